#!/bin/sh
# Installs Debian packages, as root or with sudo, without the packages that they only recommend.
# usage: apt.sh PACKAGE…
# Concurrent callers wait for each other.
set -eu
[ $# -gt 0 ] || { sed -n '2,4p' "$0"; exit 2; }
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root flock /tmp/lapwing-apt.lock sh -c \
    'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' "$0" "$@"
