/**
 * Routes with which a trainer sets the state of its policy before and after a weight update: `PUT /policy` for the default policy,
 * `PUT /v1/policies/NAME` for other policies. Workers read the state each second.
 */
import { DEFAULT_POLICY, type Farm, PolicyChange, PolicyName, PolicyRecord } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { requirePolicyAllowed } from '../access/callers.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { OF_BODY, refusals } from './answers.ts';

const PolicyParams = z.object({ name: PolicyName });
const tags = ['policies'];

export function policyRoutes(app: FastifyInstance, { farm }: GatewayDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get('/policy', () => requirePolicy(farm, DEFAULT_POLICY));
  typed.put('/policy', { schema: { body: PolicyChange } }, async (request) => {
    requirePolicyAllowed(request, DEFAULT_POLICY);
    return await farm.policies.set(DEFAULT_POLICY, request.body);
  });
  typed.get(
    '/v1/policies',
    { schema: { tags, summary: 'List policies', response: { 200: z.array(PolicyRecord), ...refusals() } } },
    () => farm.policies.list(),
  );
  typed.get(
    '/v1/policies/:name',
    {
      schema: {
        tags,
        summary: 'What a trainer serves',
        params: PolicyParams,
        response: { 200: PolicyRecord, ...refusals(400, 404) },
      },
    },
    ({ params }) => requirePolicy(farm, params.name),
  );
  typed.put(
    '/v1/policies/:name',
    {
      schema: {
        tags,
        summary: 'Set version, endpoints or state; other fields stay',
        params: PolicyParams,
        body: PolicyChange,
        response: { 200: PolicyRecord, ...refusals(...OF_BODY, 403) },
      },
    },
    async (request) => {
      requirePolicyAllowed(request, request.params.name);
      return await farm.policies.set(request.params.name, request.body);
    },
  );
  typed.delete(
    '/v1/policies/:name',
    {
      schema: {
        tags,
        summary: 'Remove a policy; runs that follow it continue with their own endpoints',
        params: PolicyParams,
        response: { 204: z.undefined().meta({ description: 'It is removed.' }), ...refusals(400, 403) },
      },
    },
    async (request, reply) => {
      requirePolicyAllowed(request, request.params.name);
      await farm.policies.remove(request.params.name);
      await reply.code(204).send();
    },
  );
}

async function requirePolicy(farm: Farm, name: string): Promise<PolicyRecord> {
  const [record] = await farm.policies.get([name]);
  if (record) return record;
  throw new Refusal(404, 'policy_unknown', `policy ${name}: no trainer has set it`, { field: 'name' });
}
