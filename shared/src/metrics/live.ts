/** Metrics that the gateway reads from Redis at each scrape. */
import { type Definitions, metricsOf } from './definition.ts';

const counter = metricsOf('counter');
const gauge = metricsOf('gauge');

export const LIVE_METRICS = {
  queueDepth: gauge(
    'swefarm_queue_depth',
    'rollouts',
    'Waiting rollouts by priority: validation (with sessions), training or collection.',
    'class',
  ),
  queueOldest: gauge(
    'swefarm_queue_oldest_seconds',
    'seconds',
    'Age of the oldest of the next 200 waiting rollouts of a class.',
    'class',
  ),
  queueJobs: gauge(
    'swefarm_queue_jobs',
    'rollouts',
    'Jobs of BullMQ: active, delayed (wait for a retry), failed (a bug).',
    'state',
  ),
  workers: gauge('swefarm_workers', 'workers', 'Living workers: claiming or paused.', 'state'),
  farmSlots: gauge('swefarm_slots', 'rollouts', 'Slots of living workers: busy or free.', 'state'),
  workersLost: counter('swefarm_workers_lost_total', 'workers', 'Workers whose registration lapsed.'),
  resultsUnreadable: counter(
    'swefarm_results_unreadable_total',
    'results',
    'Results that a reader skipped: damaged or of a newer version.',
  ),
  escaped: counter(
    'swefarm_gateway_escaped_errors_total',
    'errors',
    'Uncaught errors of the gateway: rejection (it continues) or exception (exit code 70).',
    'kind',
  ),
  policyState: gauge(
    'swefarm_policy_state',
    'bool',
    '1 for the state of the policy: serving, updating or asleep.',
    'policy',
    'state',
  ),
  endpointUp: gauge(
    'swefarm_policy_endpoint_up',
    'bool',
    '1 while at least one worker uses the endpoint.',
    'endpoint',
  ),
  endpointLoad: gauge(
    'swefarm_policy_endpoint_rollouts',
    'rollouts',
    'Running rollouts bound to the endpoint.',
    'endpoint',
  ),
  redisUp: gauge('swefarm_redis_up', 'bool', '1 when Redis answered this scrape.'),
  redisSeconds: gauge('swefarm_redis_seconds', 'seconds', 'One round trip to Redis.'),
  redisMemory: gauge('swefarm_redis_memory_bytes', 'bytes', 'Memory that Redis uses.'),
  redisMemoryLimit: gauge(
    'swefarm_redis_memory_limit_bytes',
    'bytes',
    'maxmemory of Redis, else the memory of its machine.',
  ),
  redisClients: gauge('swefarm_redis_clients', 'connections', 'Connections to Redis.'),
  artifactBytes: gauge('swefarm_artifact_bytes', 'bytes', 'Bytes of stored artifacts.'),
  artifactBudget: gauge('swefarm_artifact_budget_bytes', 'bytes', 'Limit of stored artifacts.'),
  artifacts: gauge('swefarm_artifacts', 'artifacts', 'Artifacts in the store.'),
} satisfies Definitions;
