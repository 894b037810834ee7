/**
 * Outcome sources of datasets whose parsers are programs. A program runs in a separate container. The source contains the files of the
 * program, so a stored instance contains everything that grading needs.
 */
import { readFileSync } from 'node:fs';
import type { ProgramSource } from '@swefarm/shared';

/** Path of the test log in the container of a program. The files of the plan are in the same folder. */
const LOG = '/inputs/log';
const OUTPUT = '/outcomes.json';
const SECONDS = 120;

const textOf = (name: string): string =>
  readFileSync(new URL(`../../data/programs/${name}`, import.meta.url), 'utf8');

/**
 * Returns the source for SWE-bench-Live. `source` is the column `log_parser`, Python text that defines `parser(log)`. The program runs
 * in the tools image, because the image of the instance may lack Python.
 */
export const liveProgram = (source: string): ProgramSource => ({
  from: 'program',
  files: { '/program/live.py': textOf('live.py'), '/program/row.py': source },
  argv: ['python3', '/program/live.py', '/program/row.py', LOG, OUTPUT],
  output: OUTPUT,
  form: 'map',
  image: 'tools',
  timeout: SECONDS,
});

/**
 * Returns the source for SWE-bench Pro. `source` is the parser.py of the instance, which runs with the Python of the instance's image.
 * The parser reads the outputs of the tests, which the plan lists as `stdout.log` and `stderr.log`.
 */
export const proProgram = (source: string): ProgramSource => ({
  from: 'program',
  files: { '/program/parser.py': source },
  argv: [
    '/bin/sh',
    '-c',
    'exec "$(command -v python || command -v python3)" "$@"',
    'sh',
    ...['/program/parser.py', '/inputs/stdout.log', '/inputs/stderr.log', OUTPUT],
  ],
  output: OUTPUT,
  form: 'tests',
  image: 'instance',
  timeout: SECONDS,
});

export type MultiSweTask = {
  org: string;
  repo: string;
  number: number;
  tag?: string;
  number_interval?: string;
};

/** Returns the source for Multi-SWE-bench and Multi-SWE-RL. The tools image has a parser for each repository (`multi-swe-bench`). */
export const multiSweProgram = ({
  org,
  repo,
  number,
  tag = '',
  number_interval = '',
}: MultiSweTask): ProgramSource => ({
  from: 'program',
  files: {
    '/program/multiswe.py': textOf('multiswe.py'),
    '/program/task.json': JSON.stringify({ org, repo, number, tag, number_interval }),
  },
  argv: ['python3', '/program/multiswe.py', '/program/task.json', LOG, OUTPUT],
  output: OUTPUT,
  form: 'sets',
  image: 'tools',
  timeout: SECONDS,
});
