#!/bin/sh
# Makes the folder form of the parser image, for nodes without a container engine: the host's own Python with the packages over it.
# usage: sh examples/parserimage/folder.sh DIR      then, for the workers: SWEFARM_PARSER_IMAGE=host+dir:DIR
# PYTHON names another python3 of the host below /usr. Every node needs the same version.
set -eu
[ $# -eq 1 ] || { echo "usage: sh $0 DIR" >&2; exit 2; }
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || { echo "$python does not exist: name a python3 below /usr with PYTHON=" >&2; exit 2; }
mkdir -p "$1/opt/parsers"
folder=$(cd "$1" && pwd)
"$python" -m pip install --quiet --disable-pip-version-check --upgrade --target "$folder/opt/parsers" multi-swe-bench==1.1.2
# Datasets start their programs by the name python3.
mkdir -p "$folder/opt/bin"
ln -sf "$python" "$folder/opt/bin/python3"
printf '{"Env": ["PYTHONPATH=/opt/parsers", "PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}\n' >"$folder.json"
echo "parser_image: host+dir:$folder"
