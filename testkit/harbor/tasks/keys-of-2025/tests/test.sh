#!/bin/bash
[ "$(cat answer.txt)" = port ] && reward=1 || reward=0
echo "{\"score\": $reward}" >/logs/verifier/reward.json
