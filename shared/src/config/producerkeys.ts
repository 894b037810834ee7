/** Configuration keys of the producer: the policy's key, and the gateway. */
import { z } from 'zod';
import type { Secret } from '../security/secret.ts';
import { key, plain } from './key.ts';
import * as form from './schema.ts';

export const PRODUCER_KEYS = {
  local_workers: plain(form.positiveInteger, 1, 'Workers that `rollout` starts on this machine.'),
  prices: plain<string | null>(
    form.path,
    null,
    'YAML file with the prices of models (docs/collection.md): results, reports and metrics then tell what rollouts cost. `serve` reads it once, at its start.',
  ),
  policy_api_key: plain<Secret | null>(
    form.secret,
    null,
    'API key of the policy endpoint; Redis keeps it apart from the jobs while the run lives.',
    ['OPENAI_API_KEY'],
  ),
  policy_api_key_origins: key<string[]>(
    form.origins,
    () => [],
    '',
    'Origins that may get that key beside the endpoints of the run itself, separated by commas, such as http://gpu7:8000: needed for endpoints that a policy entry brings. The key is sent nowhere else.',
  ),
  policy_api_key_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Seconds that the key stays in Redis.',
  ),
  redis_patience_seconds: plain(
    form.seconds,
    60,
    'Seconds that a command waits for a Redis that does not answer, at its start and while it collects. Commands that only show something do not wait.',
  ),
  hub_url: plain(
    form.httpUrl,
    'https://huggingface.co',
    'Hub that `dataset fetch` asks: Hugging Face, or a mirror that speaks its routes.',
    ['HF_ENDPOINT'],
  ),
  hub_token: plain<Secret | null>(
    form.secret,
    null,
    'Token for private and gated datasets; it is sent to the origin of hub_url only, never to where a redirect points.',
    ['HF_TOKEN'],
  ),
  gateway_host: plain(form.text, '127.0.0.1', 'Address on which `serve` listens.'),
  gateway_port: plain(form.port, 8080, 'Port on which `serve` listens; 0: a free one, which it prints.'),
  gateway_token: plain<Secret | null>(
    form.secret,
    null,
    'Token of the caller of `serve`, when gateway_callers names none; without either, `serve` writes a new token to gateway.token in the state folder.',
  ),
  gateway_callers: plain<string | null>(
    form.path,
    null,
    'YAML file with the callers of `serve`: for each a token and settings (docs/gateway.md).',
  ),
  gateway_anonymous: plain(
    form.flag,
    false,
    'Serve requests without a token: from everybody who reaches the port.',
  ),
  gateway_failures: plain(
    z.enum(['collector', 'nemo-rl', 'nemo-rl-sync', 'verl-recipe', 'auto']),
    'auto',
    'Which trainer the answer for a rollout that could not be judged is made for (docs/gateway.md).',
  ),
  gateway_mask_sample: plain(
    z.enum(['auto', 'honoured', 'ignored']),
    'auto',
    'Whether trainers leave out what `mask_sample` marks; auto: as gateway_failures implies (docs/nemo-gym.md). An entry of gateway_callers sets its own with mask_sample.',
  ),
  gateway_max_hold_seconds: plain(
    form.positiveSeconds,
    6 * 3600,
    'Longest time in seconds that `serve` lets a call wait for its rollout.',
  ),
  gateway_grace_seconds: plain(
    form.positiveSeconds,
    20,
    'Seconds in which a trainer whose connection dropped may repeat its call; after that its rollout is cancelled.',
  ),
  gateway_collector_grace_seconds: plain(
    form.positiveSeconds,
    120,
    'The same for a collector, which people or a scheduler start again.',
  ),
  gateway_group_hold_seconds: plain(
    form.positiveSeconds,
    1800,
    'Seconds that `serve` delays a failure for NeMo RL while other rollouts of the same prompt run: NeMo RL would abandon them (docs/nemo-gym.md).',
  ),
  file_sd: plain<string | null>(
    form.path,
    null,
    'File that `serve` writes for Prometheus (file_sd) with the answer of GET /sd, for a Prometheus that cannot reach it.',
  ),
  gateway_max_instances: plain(form.positiveInteger, 10_000, 'Most instances of one `POST /v1/runs`.'),
  gateway_max_group_size: plain(
    form.positiveInteger,
    10_000,
    'Most rollouts of one instance in one `POST /v1/runs`: group_size, oversample and refills together.',
  ),
  gateway_max_rollouts: plain(
    form.positiveInteger,
    1_000_000,
    'Most rollouts of one `POST /v1/runs`, over all its instances.',
  ),
  gateway_max_in_flight: plain<number | null>(
    form.positiveInteger,
    null,
    'Most rollouts without a result that a caller may have; more are answered 429. An entry of gateway_callers sets its own with max_in_flight.',
  ),
  gateway_max_requests_per_minute: plain<number | null>(
    form.positiveInteger,
    null,
    'Most requests of a token in a minute; more are answered 429. An entry of gateway_callers sets its own with max_requests_per_minute.',
  ),
  gateway_body_bytes: key(form.bytes, () => 64 * 1024 ** 2, '64 MiB', 'Largest body that `serve` reads.'),
};
