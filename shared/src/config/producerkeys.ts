/** Configuration keys of the producer: local workers, prices, the policy's key, the hub, and the gateway. */
import { z } from 'zod';
import { count, key, list, optional, plain, seconds, size } from './key.ts';
import * as form from './schema.ts';

export const PRODUCER_KEYS = {
  local_workers: count(1, 'Workers that `rollout` starts on this machine.'),
  prices: optional(form.path, 'YAML file with prices of models (docs/collection.md#prices).'),
  policy_api_key: optional(form.secret, 'API key of the policy endpoint.', 'OPENAI_API_KEY'),
  policy_api_key_origins: list(
    'More origins that may get the key, separated by commas: http://gpu7:8000.',
    form.origins,
  ),
  policy_api_key_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Life time of the key in Redis.',
  ),
  redis_patience_seconds: plain(
    form.seconds,
    60,
    'Seconds that a command that changes something waits for Redis.',
  ),
  hub_url: plain(
    form.httpUrl,
    'https://huggingface.co',
    'Hub of `dataset fetch`: Hugging Face or a mirror.',
    'HF_ENDPOINT',
  ),
  hub_token: optional(
    form.secret,
    'Token for private datasets, sent to the origin of hub_url only.',
    'HF_TOKEN',
  ),
  gateway_host: plain(form.text, '127.0.0.1', 'Address on which `serve` listens.'),
  gateway_port: plain(form.port, 8080, 'Port on which `serve` listens; 0: a free one.'),
  gateway_token: optional(
    form.secret,
    'Token of a single caller; without any, `serve` writes one to gateway.token in state_dir.',
  ),
  gateway_callers: optional(form.path, 'YAML file of callers (docs/gateway.md#callers).'),
  gateway_anonymous: plain(form.flag, false, 'Serve requests without a token.'),
  gateway_failures: plain(
    z.enum(['collector', 'nemo-rl', 'nemo-rl-sync', 'verl-recipe', 'auto']),
    'auto',
    'Answers for rollouts without a verdict (docs/nemo-gym.md).',
  ),
  gateway_mask_sample: plain(
    z.enum(['auto', 'honoured', 'ignored']),
    'auto',
    'Whether trainers leave out masked samples (docs/nemo-gym.md).',
  ),
  gateway_max_hold_seconds: seconds(6 * 3600, 'Longest wait of a call for its rollout.'),
  gateway_grace_seconds: seconds(
    20,
    'Seconds in which a trainer may repeat a dropped call before its rollout is cancelled.',
  ),
  gateway_collector_grace_seconds: seconds(120, 'The same for a collector.'),
  gateway_group_hold_seconds: seconds(1800, 'Longest delay of a failure for NeMo RL while siblings run.'),
  file_sd: optional(form.path, 'File in which `serve` writes the targets of GET /sd for Prometheus.'),
  gateway_agent_cards: plain(
    form.flag,
    false,
    'Let callers send cards of agents of their own; else they name cards that come with swefarm.',
  ),
  gateway_max_instances: count(10_000, 'Most instances of one `POST /v1/runs`.'),
  gateway_max_group_size: count(10_000, 'Most rollouts of one instance in one `POST /v1/runs`.'),
  gateway_max_rollouts: count(1_000_000, 'Most rollouts of one `POST /v1/runs`.'),
  gateway_max_in_flight: optional(
    form.positiveInteger,
    'Most rollouts without a result of a caller, else 429.',
  ),
  gateway_max_requests_per_minute: optional(
    form.positiveInteger,
    'Most requests of a token in a minute, else 429.',
  ),
  gateway_body_bytes: size('64 MiB', 'Largest body that `serve` reads.'),
};
