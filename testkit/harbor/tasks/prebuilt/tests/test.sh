#!/bin/bash
[ "$(cat answer.txt)" = port ] && reward=1 || reward=0
echo "$reward" >/logs/verifier/reward.txt
