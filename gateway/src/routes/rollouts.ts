/** Routes of one rollout: state, result, trajectory and artifact. */
import { type ArtifactContent, JournalEntry, parseRolloutId, Result } from '@swefarm/shared';
import { plainJson, SampleBody, sampleOf } from '@swefarm/trajectories';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { ArtifactBody, TrajectoryBody } from '../page/artifactschemas.ts';
import { documented } from './answers.ts';
import { requireRun } from './runs.ts';

export const RolloutParams = z.object({ rollout: z.string() });

const ArtifactQuery = z.object({
  routed_experts: z.enum(['true', 'false']).default('false').meta({
    description: 'true: includes the experts of each token, which are many times larger than the rest',
  }),
});
type ArtifactQuery = z.infer<typeof ArtifactQuery>;
const SampleQuery = ArtifactQuery.extend({
  lines: z.enum(['main', 'all']).default('main').meta({
    description: 'all: includes the other trained lines of an agent that comes as a program',
  }),
});

const RolloutState = z.union([
  z.object({ status: z.literal('done'), result: Result }),
  z.object({ status: z.enum(['waiting', 'running']), attempts: z.array(JournalEntry) }),
]);

export function rolloutRoutes(app: App, deps: GatewayDeps): void {
  const params = RolloutParams;
  app.get(
    '/v1/rollouts/:rollout',
    documented('State of a rollout, with its attempts or its result', RolloutState, { params }, 404),
    (request) => describeRollout(deps, request.params.rollout),
  );
  const trajectory = TrajectoryBody.nullable();
  const read = { params, querystring: ArtifactQuery };
  app.get(
    '/v1/rollouts/:rollout/trajectory',
    documented('The conversation of a finished rollout, with token ids', trajectory, read, 404),
    async ({ params, query }) => asJson((await readArtifact(deps, params.rollout)).trajectory, query),
  );
  app.get(
    '/v1/rollouts/:rollout/sample',
    documented(
      'The sample of a finished rollout for a trainer',
      SampleBody,
      { params, querystring: SampleQuery },
      404,
    ),
    async ({ params: { rollout }, query }) => {
      const result = await requireResult(deps, rollout);
      const content = await deps.farm.artifacts.read(result.artifact);
      const choice = { lines: query.lines, experts: query.routed_experts === 'true' };
      return sampleOf(result, content?.trajectory ?? null, choice);
    },
  );
  app.get(
    '/v1/rollouts/:rollout/artifact',
    documented('Trajectory, patch, report and test log of a finished rollout', ArtifactBody, read, 404),
    async ({ params, query }) => asJson(await readArtifact(deps, params.rollout), query),
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

async function requireResult({ farm }: GatewayDeps, rolloutId: string): Promise<Result> {
  const result = await farm.results.get(rolloutId);
  if (result) return result;
  throw noArtifact(rolloutId, 'it has no result yet');
}

async function readArtifact(deps: GatewayDeps, rolloutId: string): Promise<ArtifactContent> {
  const content = await deps.farm.artifacts.read((await requireResult(deps, rolloutId)).artifact);
  if (content) return content;
  throw noArtifact(rolloutId, 'no artifact was stored');
}

const noArtifact = (rolloutId: string, reason: string): Refusal =>
  new Refusal(404, 'no_artifact', `rollout: ${rolloutId}: ${reason}`, { field: 'rollout' });

/** Converts packed numbers in a value to lists of numbers, and packed bytes to base64. */
const asJson = <Body>(value: unknown, { routed_experts: experts }: ArtifactQuery): Body =>
  JSON.parse(plainJson(value, { experts: experts === 'true' })) as Body;
