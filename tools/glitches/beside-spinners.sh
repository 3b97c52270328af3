#!/bin/sh
# Runs a command beside four spinning processes on each processor.
#
#     tools/glitches/beside-spinners.sh ./loop 60
spinners=
for processor in $(seq 0 $(($(nproc) - 1))); do
    for _ in 1 2 3 4; do
        taskset -c "$processor" sh -c 'while :; do :; done' &
        spinners="$spinners $!"
    done
done
trap 'kill $spinners' EXIT
"$@"
