/**
 * The trainer's word around a weight update: `PUT /policy` for the one policy that most jobs have, `PUT /v1/policies/NAME`
 * where there are several. Workers hear of it within a second; a request that breaks meanwhile costs nothing.
 */
import { DEFAULT_POLICY, PolicyChange, PolicyName } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { requirePolicyAllowed } from '../access/callers.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';

const Named = z.object({ name: PolicyName });

export function policyRoutes(app: FastifyInstance, { farm }: GatewayDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const read = async (name: string) => {
    const [record] = await farm.policies.get([name]);
    if (record) return record;
    throw new Refusal(404, 'policy_unknown', `policy ${name}: no trainer has spoken of it`, {
      field: 'name',
    });
  };
  typed.put('/policy', { schema: { body: PolicyChange } }, async (request) => {
    requirePolicyAllowed(request, DEFAULT_POLICY);
    return await farm.policies.set(DEFAULT_POLICY, request.body);
  });
  typed.get('/policy', () => read(DEFAULT_POLICY));
  typed.get('/v1/policies', () => farm.policies.list());
  typed.get('/v1/policies/:name', { schema: { params: Named } }, ({ params }) => read(params.name));
  typed.put('/v1/policies/:name', { schema: { params: Named, body: PolicyChange } }, async (request) => {
    requirePolicyAllowed(request, request.params.name);
    return await farm.policies.set(request.params.name, request.body);
  });
  typed.delete('/v1/policies/:name', { schema: { params: Named } }, async (request, reply) => {
    const { params } = request;
    requirePolicyAllowed(request, params.name);
    await farm.policies.remove(params.name);
    await reply.code(204).send();
  });
}
