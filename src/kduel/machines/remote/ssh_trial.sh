#!/bin/sh
# Ends scripts of abandoned trials by their session, if in the trial's directory, and restores what they set.
for d in "$place"/kduel-*; do
    [ -O "$d" ] && [ ! -L "$d" ] && [ -r "$d/session" ] || continue
    read -r s <"$d/session"
    for p in $(ps -o pid= -s "$s"); do
        case $(readlink "/proc/$p/cwd") in
            "$d" | "$d"/*) for q in $(ps -o pid= -s "$s"); do kill -KILL "$q"; done; break ;;
        esac
    done
    sh "$d/conditions.sh" restore
    rm -rf "$d"
done
