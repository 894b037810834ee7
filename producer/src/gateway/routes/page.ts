/** The page at `/ui/`, and what it asks for: see `producer/src/page/`. */
import type { FastifyInstance } from 'fastify';
import { serveAssets } from '../../page/assets.ts';
import { farmSource } from '../../page/farm.ts';
import { servePageData } from '../../page/routes.ts';
import type { GatewayDeps } from '../deps.ts';

export async function pageRoutes(app: FastifyInstance, { farm, log }: GatewayDeps): Promise<void> {
  await serveAssets(app, log);
  servePageData(app, farmSource(farm), (request) => request.callers.length > 0);
}
