/**
 * Outcome sources of datasets whose parsers are programs. A program runs in a separate container. Its files are a part of the source, so a
 * stored instance contains everything that its grading needs.
 */
import { readFileSync } from 'node:fs';
import type { ProgramSource } from '@swefarm/shared';

/** The path of the log in the container of every program; the files of the plan are beside it. */
const LOG = '/inputs/log';
const OUTPUT = '/outcomes.json';
const SECONDS = 120;

const textOf = (name: string): string =>
  readFileSync(new URL(`../../data/programs/${name}`, import.meta.url), 'utf8');

/**
 * SWE-bench-Live: `source` is the column `log_parser`, Python text that defines `parser(log)`. It runs outside of the instance's
 * container, whose image may lack Python.
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
 * SWE-bench Pro: `source` is the parser.py of the instance, run by the Python of its image. It reads the outputs of the tests, which the
 * plan lists as `stdout.log` and `stderr.log`.
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

/** Multi-SWE-bench and Multi-SWE-RL: the package `multi-swe-bench` in the tools image has a parser for each repository. */
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
