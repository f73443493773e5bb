#!/bin/sh
# Installs Intel OpenVINO (a Python wheel of 59 MB, Apache-2.0), whose CPU plug-in stands in for an NPU.
#
# usage: install.sh FOLDER
#
# A program then uses it with LAPWING_OPENVINO=FOLDER/libs.
set -eu
[ $# -eq 1 ] || { sed -n '2,6p' "$0"; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ ! -e "$folder/libs" ]; then
    python3 -m venv "$folder/venv"
    # The libraries need no other package.
    "$folder/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check --no-deps openvino==2026.4.1
    libraries=$(echo "$folder"/venv/lib/python3*/site-packages/openvino/libs)
    ln -s "$libraries" "$folder/libs"
fi
