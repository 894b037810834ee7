/**
 * Routes with which a trainer sets the state of its policy before and after a weight update: `PUT /policy` for the default policy,
 * `PUT /v1/policies/NAME` for other policies. Workers read the state each second.
 */
import { DEFAULT_POLICY, type Farm, PolicyChange, PolicyName, PolicyRecord } from '@swefarm/shared';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import { requirePolicyAllowed } from '../access/callers.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { documented, refusals } from './answers.ts';

const PolicyParams = z.object({ name: PolicyName });

export function policyRoutes(app: App, { farm }: GatewayDeps): void {
  app.get('/policy', () => requirePolicy(farm, DEFAULT_POLICY));
  app.put('/policy', { schema: { body: PolicyChange } }, async (request) => {
    requirePolicyAllowed(request, DEFAULT_POLICY);
    return await farm.policies.set(DEFAULT_POLICY, request.body);
  });
  app.get('/v1/policies', documented('List policies', z.array(PolicyRecord), {}), () => farm.policies.list());
  app.get(
    '/v1/policies/:name',
    documented('What a trainer serves', PolicyRecord, { params: PolicyParams }, 404),
    ({ params }) => requirePolicy(farm, params.name),
  );
  const change = { params: PolicyParams, body: PolicyChange };
  app.put(
    '/v1/policies/:name',
    documented('Set version, endpoints, model or state; other fields stay', PolicyRecord, change, 403),
    async (request) => {
      requirePolicyAllowed(request, request.params.name);
      return await farm.policies.set(request.params.name, request.body);
    },
  );
  app.delete(
    '/v1/policies/:name',
    {
      schema: {
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
