import { type Definitions, metricsOf } from './definition.ts';

const counter = metricsOf('counter', 'count');
const gaugeOfBytes = metricsOf('gauge', 'bytes');
const gauge = metricsOf('gauge', 'count');
const gaugeOfSeconds = metricsOf('gauge', 'seconds');
const histogramOfSeconds = metricsOf('histogram', 'seconds');

const STAGE_BUCKETS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200] as const;
const COMMAND_BUCKETS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300] as const;
const MODEL_BUCKETS = [0.1, 0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640] as const;

export const WORKER_METRICS = {
  slots: gauge('swefarm_worker_slots', 'Rollouts that this worker may run at once.'),
  activeRollouts: gauge('swefarm_worker_active_rollouts', 'Running rollouts.'),
  paused: gauge('swefarm_worker_paused', '1 while memory, disk, event loop or artifact budget stop claims.'),
  unhealthy: gauge('swefarm_worker_sick', '1 while the node is unhealthy and claims nothing.'),
  attempts: counter(
    'swefarm_worker_attempts_total',
    'Attempts by end: done, late, drained, or the class of the failure.',
    'class',
  ),
  turns: counter('swefarm_worker_turns_total', 'Turns, also of failed attempts.'),
  tokens: counter(
    'swefarm_worker_tokens_total',
    'Tokens, also of failed attempts: prompt or completion.',
    'side',
  ),
  replays: counter(
    'swefarm_replays_total',
    'Replays of recorded turns after the loss of a worker or sandbox, by end: continued or differed (the rollout began anew).',
    'end',
  ),
  replayedTurns: counter(
    'swefarm_replayed_turns_total',
    'Turns that a replay saved from being sampled again.',
  ),
  replayedTokens: counter(
    'swefarm_replayed_tokens_total',
    'Received tokens of interrupted answers that a later attempt continued.',
  ),
  sessionInputs: counter(
    'swefarm_session_inputs_total',
    'Answered inputs of sessions: command, write, read or diff.',
    'kind',
  ),
  agentRequests: counter(
    'swefarm_agent_requests_total',
    'Requests of agents that come as programs: requests (all), whole (prompt rendered again), repeated, repaired, refused.',
    'agent',
    'what',
  ),
  agentMaskedTurns: counter(
    'swefarm_agent_masked_turns_total',
    'Turns of agents that come as programs that are not trained on.',
    'agent',
  ),
  evaluations: counter(
    'swefarm_evaluation_runs_total',
    'Runs of tests by purpose: patch, second (of a resolved patch), control, or feedback on a submit.',
    'purpose',
  ),
  samePatches: counter(
    'swefarm_same_patch_total',
    'Patches that another rollout has too: taken (its verdict), graded (each by itself), gave_up (waited too long), unreadable.',
    'end',
  ),
  controlEvaluations: counter(
    'swefarm_control_evaluations_total',
    'Control evaluations of the untouched tree or gold: started, not_started, timed_out or lost.',
    'tree',
    'outcome',
  ),
  stageSeconds: {
    ...histogramOfSeconds('swefarm_stage_seconds', 'Stages of attempts.', 'stage'),
    buckets: STAGE_BUCKETS,
  },
  commandSeconds: {
    ...histogramOfSeconds('swefarm_command_seconds', 'One command of the agent.'),
    buckets: COMMAND_BUCKETS,
  },
  modelSeconds: {
    ...histogramOfSeconds('swefarm_model_seconds', 'One turn of the policy, with waits and retries.'),
    buckets: MODEL_BUCKETS,
  },
  containers: gauge('swefarm_worker_containers', 'Containers of this worker.'),
  leaked: gauge(
    'swefarm_worker_leaked_containers',
    'Containers of this worker without a running rollout; a leak if it stays above 0.',
  ),
  reaped: counter('swefarm_sandboxes_reaped_total', 'Sandboxes of dead owners that were removed.'),
  images: gauge('swefarm_worker_images', 'Images ready on this node.'),
  imageBytes: gaugeOfBytes(
    'swefarm_worker_image_bytes',
    'Bytes of these images, as the runtime counts them.',
  ),
  imagesReady: counter(
    'swefarm_worker_images_ready_total',
    'Images made ready: cached, or pulled (fetched or unpacked).',
    'source',
  ),
  imagesEvicted: counter('swefarm_worker_images_evicted_total', 'Images evicted.'),
  diskFree: gaugeOfBytes('swefarm_worker_disk_free_bytes', 'Free bytes on the disk of sandboxes.'),
  diskSize: gaugeOfBytes('swefarm_worker_disk_size_bytes', 'Size of the disk of sandboxes.'),
  lockLosses: counter(
    'swefarm_worker_lock_losses_total',
    'Rollouts whose queue lock was not renewed in time.',
  ),
  beatsMissed: counter('swefarm_worker_heartbeats_missed_total', 'Heartbeats that Redis did not accept.'),
  runsSkipped: gauge(
    'swefarm_keeper_runs_skipped',
    'Unfinished runs with an unreadable record, which maintenance skips.',
  ),
  escaped: counter(
    'swefarm_worker_escaped_errors_total',
    'Uncaught errors of the worker: rejection (it continues) or exception (it hands back its rollouts; exit code 70).',
    'kind',
  ),
  loopLagSeconds: gaugeOfSeconds(
    'swefarm_event_loop_lag_seconds',
    '99th percentile of the delay of the event loop; over 1 s the worker stops claiming.',
  ),
} satisfies Definitions;
