/** A caller of a release's gateway in the test cluster, which submits rollouts and reads their results. */

import { poll, sleep } from '@swefarm/shared';
import { expect } from 'vitest';
import { prepareSubject } from '../../src/images/subject.ts';
import { conversation, running, type ScriptInput } from '../../src/policy/script.ts';
import { type ScriptedPolicy, startScriptedPolicy } from '../../src/policy/server.ts';
import { type Cluster, NODE, PORTS, secretOf } from './cluster.ts';

export type Line = {
  rollout_id: string;
  attempt: number;
  outcome: string;
  reward: number | null;
  failure: { class: string; attempts: number } | null;
};
type Results = { results: Line[]; last_id: string };

/** Makes a script: even rollouts fix the bug, odd rollouts do not; each first has `turns` turns of two seconds. */
const scriptOf = (turns: number): ScriptInput => {
  const wait = { command: 'sleep 2', repeat: turns };
  const edit = (by: string) => running(`sed -i 's/return a - b/return ${by}/' calc/ops.py`);
  return conversation([wait, ...edit('a + b')], [wait, ...edit('b - a')]);
};

/** Starts a policy at an address that pods can reach. */
export const startPolicy = (turns: number): Promise<ScriptedPolicy> =>
  startScriptedPolicy({ script: scriptOf(turns), host: NODE });

export type Caller = {
  ask(path: string, body?: object): Promise<Response>;
  /** Submits rollouts of the test's instance and returns the id of the run. @param more settings of sandboxes */
  submit(policy: ScriptedPolicy, count: number, image?: string, more?: object): Promise<string>;
  /**
   * Reads the results of a run until there are `count`. Calls `seen` with all results after each answer. Retries while the gateway or
   * Redis is unavailable.
   */
  results(run: string, count: number, seen?: (lines: readonly Line[]) => Promise<unknown>): Promise<Line[]>;
  /** Fails unless each rollout has one judged result with an artifact and the verdict of the script. */
  expectWhole(lines: readonly Line[], count: number): Promise<void>;
};

const GATEWAY = `http://${NODE}:${PORTS.gateway}`;
const PATIENCE_MS = 900_000;

/** `gateway`: the URL of the release's gateway. */
export async function callerOf(cluster: Cluster, release = 'farm', gateway = GATEWAY): Promise<Caller> {
  const token = await secretOf(cluster, `${release}-swefarm-gateway`, 'token');
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const ask = (at: string, body?: object): Promise<Response> =>
    fetch(`${gateway}${at}`, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
  return {
    ask,
    async submit(policy, count, image = 'dir:/archives/tree', more = {}) {
      const { instance } = await prepareSubject();
      const run = {
        policy: { urls: [policy.url], model: 'scripted' },
        sandbox: { memory_bytes: 268_435_456, ...more },
      };
      const answer = await ask('/v1/runs', { instances: [{ ...instance, image }], group_size: count, run });
      const text = await answer.text();
      expect(answer.status, text).toBe(201);
      return (JSON.parse(text) as { run_id: string }).run_id;
    },
    async results(run, count, seen) {
      const lines: Line[] = [];
      let after = '';
      const end = Date.now() + PATIENCE_MS;
      while (lines.length < count && Date.now() < end) {
        const query = `wait_seconds=3${after && `&after=${after}`}`;
        const answer = await ask(`/v1/runs/${run}/results?${query}`).catch(() => null);
        if (answer?.ok) {
          const { results, last_id } = (await answer.json()) as Results;
          lines.push(...results);
          after = last_id;
          await seen?.(lines);
          continue;
        }
        // 503 or no answer: Redis or the gateway is unavailable. Other errors are permanent.
        expect([undefined, 503]).toContain(answer?.status);
        await sleep(1_000);
      }
      return lines;
    },
    async expectWhole(lines, count) {
      expect(lines).toHaveLength(count);
      expect(new Set(lines.map(({ rollout_id }) => rollout_id)).size).toBe(count);
      expect(lines.filter(({ outcome }) => outcome !== 'judged')).toEqual([]);
      for (const { rollout_id } of lines) {
        // 503: Redis or the gateway is unavailable.
        const artifact = await poll(
          async () => {
            const answer = await ask(`/v1/rollouts/${rollout_id}/artifact`).catch(() => null);
            return answer === null || answer.status === 503 ? null : answer;
          },
          { pauseMs: 1_000, withinMs: PATIENCE_MS },
        );
        expect(artifact?.status, rollout_id).toBe(200);
        const found = (await artifact?.json()) as { report: { resolved: boolean } } | undefined;
        expect(found?.report.resolved, rollout_id).toBe(Number(rollout_id.split('.').at(-1)) % 2 === 0);
      }
    },
  };
}
