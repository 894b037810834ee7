/** Every group of routes the gateway serves. */
import type { Routes } from './deps.ts';
import { gymRoutes } from './routes/gym.ts';
import { healthRoutes } from './routes/health.ts';
import { metricsRoutes } from './routes/metrics.ts';
import { pageRoutes } from './routes/page.ts';
import { policyRoutes } from './routes/policy.ts';
import { runRoutes } from './routes/runs.ts';
import { sessionRoutes } from './routes/sessions.ts';

export const ROUTES: readonly Routes[] = [
  gymRoutes,
  healthRoutes,
  metricsRoutes,
  pageRoutes,
  policyRoutes,
  runRoutes,
  sessionRoutes,
];
