#!/bin/bash
echo "this script writes no reward"
