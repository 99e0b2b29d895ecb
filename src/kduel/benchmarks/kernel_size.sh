#!/bin/sh
# Sizes of a kernel that is built, as files of the step.
cd "$KDUEL_OBJECTS"
# shellcheck disable=SC2086 # several words
[ -e vmlinux ] || "$KDUEL_MAKE" -s -j"$(nproc)" $KDUEL_TARGETS >"$KDUEL_STEP/build.log" 2>&1
"${KDUEL_CROSS}size" vmlinux >"$KDUEL_STEP/size"
"${KDUEL_CROSS}size" -A -d vmlinux >"$KDUEL_STEP/sections"
wc -c <"$KDUEL_IMAGE" >"$KDUEL_STEP/image"
if [ "$KDUEL_COMPRESSED" = yes ]; then
    wc -c <"$KDUEL_IMAGE"
else
    "${KDUEL_CROSS}objcopy" -O binary vmlinux vmlinux.bin
    gzip -9 -n -c vmlinux.bin | wc -c
fi >"$KDUEL_STEP/compressed"
find . -name '*.ko' -type f -exec wc -c {} \; | sort -k2 >"$KDUEL_STEP/modules"
wc -l <"$KDUEL_STEP/modules" >"$KDUEL_STEP/modules-count"
