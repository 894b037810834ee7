#!/bin/bash
echo port >/app/answer.txt
