#!/usr/bin/env python3
"""Measures what versions of data take in a bucket, beside restic and borg.

    reduction_beside.py --tamis target/release/tamis --dir /var/tmp/reduction DATA...

A DATA is a directory whose entries are versions: directories, saved one after the other in the
order of their names. In a bucket each version is a prefix; restic and borg make a backup of each.
Bytes stored are frames and tables of the store, and the sizes of all files of the repositories.
"""

import argparse
import json
import os
import shutil
import subprocess

COMPRESSIONS = ["lz4", "zstd:3"]
SEGMENTS = ["fixed", "cdc", "auto"]


def run(*command, **environment):
    done = subprocess.run(
        command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, check=True
    )
    return done.stdout


def bytes_below(path):
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(os.lstat(file).st_size for file in files)


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    return path


def tamis(program, path, versions, segments, compression):
    run(program, "init", fresh(path), "--capacity", "4G", "--compression", compression)
    run(program, "bucket", "create", path, "data", "--segments", segments)
    for version in versions:
        name = os.path.basename(version)
        run(program, "put", "-r", version, f"{path}/data/{name}/")
    figures = json.loads(run(program, "stats", path, "--json"))
    return figures["stored_bytes"] + figures["table_bytes"]


def restic(path, versions):
    environment = {"RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": fresh(path)}
    run("restic", "init", **environment)
    for version in versions:
        run("restic", "backup", "--no-cache", "--compression", "auto", version, **environment)
    return bytes_below(path)


def borg(path, versions, compression):
    environment = {"BORG_CACHE_DIR": path + ".cache", "BORG_CONFIG_DIR": path + ".config"}
    run("borg", "init", "--encryption", "none", fresh(path), **environment)
    for version in versions:
        archive = f"{path}::{os.path.basename(version)}"
        run("borg", "create", "--compression", compression, archive, version, **environment)
    return bytes_below(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tamis", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("data", nargs="+")
    arguments = parser.parse_args()
    os.makedirs(fresh(arguments.dir))
    names = [f"{segments} {compression}" for compression in COMPRESSIONS for segments in SEGMENTS]
    names += ["restic", "borg lz4", "borg zstd,3"]
    print(f"{'MB':10}{'plain':>9}" + "".join(f"{name:>14}" for name in names))
    for data in arguments.data:
        versions = sorted(entry.path for entry in os.scandir(data))
        path = os.path.join(arguments.dir, "store")
        stored = [
            tamis(arguments.tamis, path, versions, segments, compression)
            for compression in COMPRESSIONS
            for segments in SEGMENTS
        ]
        stored.append(restic(path, versions))
        stored += [borg(path, versions, compression) for compression in ("lz4", "zstd,3")]
        figures = "".join(f"{figure / 1e6:>14.1f}" for figure in stored)
        plain = sum(bytes_below(version) for version in versions)
        print(f"{os.path.basename(data):10}{plain / 1e6:>9.1f}{figures}", flush=True)
    shutil.rmtree(arguments.dir)


if __name__ == "__main__":
    main()
