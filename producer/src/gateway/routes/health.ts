/** `GET /healthz`, for load balancers and probes: this process serves and reaches its Redis. */
import type { FastifyInstance } from 'fastify';
import type { GatewayDeps } from '../deps.ts';

export function healthRoutes(app: FastifyInstance, { farm }: GatewayDeps): void {
  app.get('/healthz', { config: { public: true } }, async () => {
    // Throws what Redis says, which is answered as 503.
    const redisMs = await farm.ping();
    return { status: 'ok', redis_ms: Math.round(redisMs * 10) / 10 };
  });
}
