/** Metrics that the gateway reads from Redis at each scrape, and its own count of uncaught errors. */
import { type Definitions, metricsOf } from './definition.ts';

const counter = metricsOf('counter', 'count');
const gaugeOfBytes = metricsOf('gauge', 'bytes');
const gauge = metricsOf('gauge', 'count');
const gaugeOfSeconds = metricsOf('gauge', 'seconds');

export const LIVE_METRICS = {
  queueDepth: gauge(
    'swefarm_queue_depth',
    'Waiting rollouts by priority: validation (with sessions), training or collection.',
    'class',
  ),
  queueOldest: gaugeOfSeconds(
    'swefarm_queue_oldest_seconds',
    'Age of the oldest of the next 200 waiting rollouts of a class.',
    'class',
  ),
  queueJobs: gauge(
    'swefarm_queue_jobs',
    'Jobs of BullMQ: active, delayed (wait for a retry or for their policy), failed (a bug).',
    'state',
  ),
  workers: gauge('swefarm_workers', 'Living workers: claiming or paused.', 'state'),
  farmSlots: gauge('swefarm_slots', 'Slots of living workers: busy or free.', 'state'),
  workersLost: counter('swefarm_workers_lost_total', 'Workers whose registration lapsed.'),
  resultsUnreadable: counter(
    'swefarm_results_unreadable_total',
    'Results that a reader skipped: damaged or of a newer version.',
  ),
  escaped: counter(
    'swefarm_gateway_escaped_errors_total',
    'Uncaught errors of the gateway: rejection (it continues) or exception (exit code 70).',
    'kind',
  ),
  policyState: gauge(
    'swefarm_policy_state',
    '1 for the state of the policy: serving, pausing, updating or asleep.',
    'policy',
    'state',
  ),
  endpointUp: gauge(
    'swefarm_policy_endpoint_up',
    '1 while at least one worker uses the endpoint.',
    'endpoint',
  ),
  endpointLoad: gauge(
    'swefarm_policy_endpoint_rollouts',
    'Running rollouts bound to the endpoint.',
    'endpoint',
  ),
  endpointKvUsage: gauge(
    'swefarm_policy_endpoint_kv_usage',
    'Share of the KV cache that running requests use, by the metrics of the endpoint.',
    'endpoint',
  ),
  endpointRequests: gauge(
    'swefarm_policy_endpoint_requests',
    'Requests at the endpoint, by its metrics: running or waiting.',
    'endpoint',
    'state',
  ),
  endpointPreemptions: counter(
    'swefarm_policy_endpoint_preemptions_total',
    'Requests that the endpoint preempted, by its metrics.',
    'endpoint',
  ),
  admissionRollouts: gauge(
    'swefarm_admission_rollouts',
    'Rollouts by admission: playing, suspended (before their next turn) or waiting (without a sandbox).',
    'policy',
    'state',
  ),
  admissionLimit: gauge(
    'swefarm_admission_limit',
    'Rollouts of the policy that may play at once; absent: no limit.',
    'policy',
  ),
  redisUp: gauge('swefarm_redis_up', '1 when Redis answered this scrape.'),
  redisSeconds: gaugeOfSeconds('swefarm_redis_seconds', 'One round trip to Redis.'),
  redisMemory: gaugeOfBytes('swefarm_redis_memory_bytes', 'Memory that Redis uses.'),
  redisMemoryLimit: gaugeOfBytes(
    'swefarm_redis_memory_limit_bytes',
    'maxmemory of Redis, else the memory of its machine.',
  ),
  redisClients: gauge('swefarm_redis_clients', 'Connections to Redis.'),
  artifactBytes: gaugeOfBytes('swefarm_artifact_bytes', 'Bytes of stored artifacts.'),
  artifactBudget: gaugeOfBytes('swefarm_artifact_budget_bytes', 'Limit of stored artifacts.'),
  artifacts: gauge('swefarm_artifacts', 'Artifacts in the store.'),
} satisfies Definitions;
