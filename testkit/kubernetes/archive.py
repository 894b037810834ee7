#!/usr/bin/env python3
"""Writes a folder as an image of one layer, in the form of `docker save`, without an engine.
usage: archive.py FOLDER ARCHIVE NAME:TAG COMMAND..."""

import hashlib
import io
import json
import sys
import tarfile


def reset(entry):
    """Removes owner and time of an entry, so that equal files give equal bytes."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main(folder, archive, name, *command):
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tree:
        tree.add(folder, arcname=".", filter=reset)
    files = {"layer.tar": layer.getvalue()}
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin:/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files["layer.tar"]).hexdigest()]},
    }
    files["config.json"] = json.dumps(config).encode()
    files["manifest.json"] = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(archive, "w") as whole:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            whole.addfile(entry, io.BytesIO(content))


main(*sys.argv[1:])
