#!/bin/bash
touch /app/one
(while :; do date >>/app/beats; sleep 0.2; done) &
sleep 600
