#!/bin/sh
# Installs Qualcomm QNN (a Python wheel of 99 MB for x86-64), whose emulator stands in for an NPU.
#
# usage: LAPWING_TEST_QNN=1 install.sh FOLDER
#
# Qualcomm's terms (Qualcomm_LICENSE.pdf in the wheel) apply to the libraries, and to download them is to accept
# these terms. LAPWING_TEST_QNN=1 states that. A program then uses QNN with LAPWING_QNN=FOLDER/onnxruntime_qnn.
set -eu
[ $# -eq 1 ] || { sed -n '2,7p' "$0"; exit 2; }
if [ "${LAPWING_TEST_QNN:-}" != 1 ]; then
    echo "QNN is not installed: set LAPWING_TEST_QNN=1 if you accept Qualcomm's terms" >&2
    exit 1
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
wheel=onnxruntime_qnn-2.7.0-cp311-cp311-manylinux_2_35_x86_64.whl
hash=c56c01562b8534fe8980cfea4601408d950c065f8251fb862ce82101c52c9849
if [ ! -e "$folder/onnxruntime_qnn/libQnnHtp.so" ]; then
    # Only the libraries are used, with any version of Python.
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --python-version 3.11 --implementation cp --platform manylinux_2_35_x86_64 \
        --dest "$folder" onnxruntime-qnn==2.7.0
    echo "$hash  $folder/$wheel" | sha256sum --check --quiet
    # The library finds those beside its folder, so both are unpacked.
    python3 -m zipfile -e "$folder/$wheel" "$folder"
    rm "$folder/$wheel"
fi
