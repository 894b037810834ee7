/** Provides tests of the farm's processes with a folder, and with the farm's commands, whose state is in the folder. */
import { join } from 'node:path';
import type { InstanceHealth, Report, Result, Trajectory } from '@swefarm/shared';
import { expect } from 'vitest';
import {
  type Finished,
  runCommand,
  type Started,
  startCommand,
  words,
} from '../../src/launchers/commands.ts';
import { readLines } from '../../src/lines.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { endlessKeys, processesOf, scratchOf } from './leftovers.ts';

/** A command line as a template. */
type Words = Parameters<typeof words>;

export type Scene = {
  folder: string;
  env: Record<string, string>;
  swefarm(...line: Words): Promise<Finished>;
  /** Runs `swefarm`, which must exit with 0, and returns its standard output. */
  done(...line: Words): Promise<string>;
  submit(...line: Words): Promise<string>;
  /** Collects a run, and returns its lines too. */
  collect(run: string): Promise<Finished & { lines: Line[] }>;
  /**
   * Runs `swefarm rollout`, which must end with this code, and returns the lines by instance and index.
   * @param name of the file `NAME.jsonl` in the folder
   */
  rollouts(name: string, flags: readonly string[], code?: number): Promise<Line[]>;
  /** Starts `swefarm`. */
  start(...line: Words): Started;
  /** Starts a worker, and waits until it is ready. */
  worker(...line: Words): Promise<Started>;
  /** Returns the artifact of a rollout of an output file. @param rollout `FILE#INSTANCE.INDEX` */
  show(rollout: string): Promise<Shown>;
  /** Returns all messages that the agent of a rollout received, in one text. */
  seen(rollout: string): Promise<string>;
  /** Fails when stopped workers left files, a process, or a Redis key without an expiry. */
  expectNothingLeft(): Promise<void>;
};

/** A rollout in an output file. */
export type Line = Result & { report: Report | null };

/** A line that `swefarm health` prints for an instance. */
export type Finding = InstanceHealth & { instance_id: string };

type Bucket = { success: string[]; failure: string[] };

export type Shown = {
  trajectory: { messages: { role: string; content: string }[] } & Trajectory;
  report: { tests_status: Record<'FAIL_TO_PASS' | 'PASS_TO_PASS', Bucket> };
  test_log: string;
};

/** @param more variables of the commands' environment */
export function openScene(more: Record<string, string> = {}): Scene {
  const folder = temporaryFolder('e2e');
  const env: Record<string, string> = {
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    ...more,
  };
  const swefarm: Scene['swefarm'] = (...line) => runCommand('swefarm', words(...line), env);
  const done: Scene['done'] = async (...line) => {
    const { code, stdout, stderr } = await swefarm(...line);
    expect(code, stderr).toBe(0);
    return stdout;
  };
  const show: Scene['show'] = async (rollout) =>
    JSON.parse((await swefarm`show ${rollout} --json`).stdout).content;
  return {
    folder,
    env,
    swefarm,
    done,
    submit: async (...line) => JSON.parse(await done`submit ${words(...line)}`).run_id,
    async collect(run) {
      const output = join(folder, `${run}.jsonl`);
      const ended = await swefarm`collect ${run} --output ${output}`;
      return { ...ended, lines: await readLines(output) };
    },
    async rollouts(name, flags, code = 0) {
      const output = join(folder, `${name}.jsonl`);
      const ended = await swefarm`rollout ${flags} --output ${output}`;
      expect(ended.code, ended.stderr).toBe(code);
      const position = ({ instance_id, rollout_index }: Line): string =>
        `${instance_id} ${String(rollout_index).padStart(4, '0')}`;
      return (await readLines<Line>(output)).sort((a, b) => (position(a) < position(b) ? -1 : 1));
    },
    start: (...line) => startCommand('swefarm', words(...line), env),
    async worker(...line) {
      const worker = startCommand('swefarm-worker', ['run', ...words(...line)], env);
      await worker.until(/"msg":"ready"/);
      return worker;
    },
    show,
    async seen(rollout) {
      const { messages } = (await show(rollout)).trajectory;
      return messages.flatMap(({ role, content }) => (role === 'assistant' ? [] : [content])).join('\n');
    },
    async expectNothingLeft() {
      expect(await scratchOf(join(folder, 'scratch'))).toEqual([]);
      expect(await processesOf(join(folder, 'scratch'))).toEqual([]);
      expect(await endlessKeys(env.SWEFARM_REDIS_URL ?? '')).toEqual([]);
    },
  };
}

export type Call = (method: string, path: string, body?: unknown) => Promise<Response>;

/** Returns a function that calls a gateway with a token. */
export const callerOf =
  (url: string, token: string): Call =>
  (method, path, body) => {
    const headers = { authorization: `Bearer ${token}` };
    if (body === undefined) return fetch(url + path, { method, headers });
    const json = { ...headers, 'content-type': 'application/json' };
    return fetch(url + path, { method, headers: json, body: JSON.stringify(body) });
  };
