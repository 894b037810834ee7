/** Routes that read the results of a run as they arrive: single results, and ended groups. */
import { GroupChoice, GroupEnd, Result, UnreadableResult } from '@swefarm/shared';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { closedSignal } from '../calls/callconnection.ts';
import { documented } from './answers.ts';
import { RunParams, requireRun } from './runs.ts';

const ResultsQuery = z.object({
  after: z
    .string()
    .regex(/^\d+(-\d+)?$/, 'expected the last_id of an earlier answer')
    .default('0')
    .meta({ description: 'last_id of the previous answer; 0: from the start' }),
  wait_seconds: z.coerce.number().min(0).max(3600).default(0),
  count: z.coerce.number().int().min(1).max(1000).default(200),
});

const GroupsQuery = ResultsQuery.extend({
  count: z.coerce.number().int().min(1).max(1000).default(32),
  keep: GroupChoice.default('all').meta({
    description: 'all: also short groups; mixed: rewards differ; selected: groups that count for `until`',
  }),
});

const ResultList = z.object({
  results: z.array(Result),
  unreadable: z.array(UnreadableResult).meta({ description: 'unreadable results, which are skipped' }),
  last_id: z.string().meta({ description: 'the next `after`' }),
});

const GroupList = z.object({
  groups: z.array(GroupEnd.extend({ results: z.array(Result), unreadable: z.array(UnreadableResult) })),
  last_id: z.string().meta({ description: 'the next `after`' }),
  done: z.boolean().meta({ description: 'no group can follow: the run has no rollout without a result' }),
});

export function runResultRoutes(app: App, deps: GatewayDeps): void {
  app.get(
    '/v1/runs/:run/results',
    documented('Results as they finish', ResultList, { params: RunParams, querystring: ResultsQuery }, 404),
    (request, reply) => readResults(deps, request.params.run, request.query, reply),
  );
  app.get(
    '/v1/runs/:run/groups',
    documented('Groups as they end', GroupList, { params: RunParams, querystring: GroupsQuery }, 404),
    (request, reply) => readGroups(deps, request.params.run, request.query, reply),
  );
}

async function readResults(
  deps: GatewayDeps,
  runId: string,
  { after, wait_seconds, count }: z.infer<typeof ResultsQuery>,
  reply: FastifyReply,
) {
  await requireRun(deps, runId);
  const read = async (signal: AbortSignal) => {
    const options = { count, blockMs: wait_seconds * 1000, signal };
    const { results, unreadable, last_id } = await deps.farm.results.read(runId, after, options);
    return { results: results.map(({ result }) => result), unreadable, last_id };
  };
  return await whileConnected(deps, reply, read, { results: [], unreadable: [], last_id: after });
}

async function readGroups(
  deps: GatewayDeps,
  runId: string,
  { after, wait_seconds, count, keep }: z.infer<typeof GroupsQuery>,
  reply: FastifyReply,
) {
  const { groups: groupsOf, groupEnds } = deps.farm;
  if ((await requireRun(deps, runId)).open) {
    const text = `run: ${runId} is an open run: callers add rollouts to its groups, so they do not end; read its results`;
    throw new Refusal(400, 'bad_request', text, { field: 'run' });
  }
  const read = async (signal: AbortSignal) => {
    // A run without open rollouts ends no more groups, so the read does not wait.
    const blockMs = (await groupsOf.left(runId)) === 0 ? 0 : wait_seconds * 1000;
    let batch = await groupEnds.read(runId, after, { count, keep, blockMs, signal });
    let done = false;
    if (batch.groups.length === 0 && (await groupsOf.left(runId)) === 0) {
      // The last groups may have ended after the first read.
      batch = await groupEnds.read(runId, batch.last_id, { count, keep, signal });
      done = batch.groups.length === 0;
    }
    const groups = batch.groups.map((group) => ({
      ...group,
      results: group.results.map(({ result }) => result),
    }));
    return { groups, last_id: batch.last_id, done };
  };
  return await whileConnected(deps, reply, read, { groups: [], last_id: after, done: false });
}

/** Runs a read that may wait. Answers nothing if the caller disconnects, and `empty` if the gateway stops. */
async function whileConnected<T>(
  { signal }: GatewayDeps,
  reply: FastifyReply,
  read: (signal: AbortSignal) => Promise<T>,
  empty: T,
): Promise<T | FastifyReply> {
  const closed = closedSignal(reply);
  try {
    return await read(AbortSignal.any([closed, signal]));
  } catch (error) {
    if (closed.aborted) return reply.hijack();
    if (signal.aborted) return empty;
    throw error;
  }
}
