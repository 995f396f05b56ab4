#!/usr/bin/env bash
# Exits 0 when Docker may be used and its daemon answers.
[ "${DESKFORK_NO_DOCKER:-0}" != 1 ] && timeout 10 docker info >/dev/null 2>&1
