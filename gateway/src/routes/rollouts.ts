/** Routes of one rollout: state, result, trajectory and artifact. */
import { type ArtifactContent, parseRolloutId } from '@swefarm/shared';
import { plainJson } from '@swefarm/trajectories';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { ArtifactBody, TrajectoryBody } from '../page/artifactschemas.ts';
import { refusals } from './answers.ts';
import { requireRun } from './runs.ts';
import { RolloutParams, RolloutState } from './runschemas.ts';

const tags = ['rollouts'];

export function rolloutRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    '/v1/rollouts/:rollout',
    {
      schema: {
        tags,
        summary: 'State of a rollout, with its attempts or its result',
        params: RolloutParams,
        response: { 200: RolloutState, ...refusals(400, 404) },
      },
    },
    ({ params }) => describeRollout(deps, params.rollout),
  );
  typed.get(
    '/v1/rollouts/:rollout/trajectory',
    {
      schema: {
        tags,
        summary: 'The conversation of a finished rollout, with token ids',
        params: RolloutParams,
        response: { 200: TrajectoryBody.nullable(), ...refusals(400, 404) },
      },
    },
    async ({ params }) => {
      const { trajectory } = await readArtifact(deps, params.rollout);
      return asJson<z.infer<typeof TrajectoryBody> | null>(trajectory);
    },
  );
  typed.get(
    '/v1/rollouts/:rollout/artifact',
    {
      schema: {
        tags,
        summary: 'Trajectory, patch, report and test log of a finished rollout',
        params: RolloutParams,
        response: { 200: ArtifactBody, ...refusals(400, 404) },
      },
    },
    async ({ params }) => asJson<z.infer<typeof ArtifactBody>>(await readArtifact(deps, params.rollout)),
  );
}

async function describeRollout(deps: GatewayDeps, rolloutId: string): Promise<z.infer<typeof RolloutState>> {
  const { farm } = deps;
  const result = await farm.results.get(rolloutId);
  if (result) return { status: 'done', result };
  await requireRun(deps, parseRolloutId(rolloutId).runId);
  const attempts = await farm.journal.read(rolloutId);
  return { status: attempts.length === 0 ? 'waiting' : 'running', attempts };
}

async function readArtifact({ farm }: GatewayDeps, rolloutId: string): Promise<ArtifactContent> {
  const result = await farm.results.get(rolloutId);
  const content = result && (await farm.artifacts.read(result.artifact));
  if (content) return content;
  const reason = result ? 'no artifact was stored' : 'it has no result yet';
  throw new Refusal(404, 'no_artifact', `rollout: ${rolloutId}: ${reason}`, { field: 'rollout' });
}

/** Converts packed numbers in a value to lists of numbers. */
const asJson = <Body>(value: unknown): Body => JSON.parse(plainJson(value)) as Body;
