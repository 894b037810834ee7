#!/bin/bash
[ -e /app/given.txt ] && given=1 || given=0
grep -qx done /app/state.txt 2>/dev/null && reward=1 || reward=0
echo "{\"reward\": $reward, \"given\": $given}" >/logs/verifier/reward.json
