/** `swefarm doctor`: everything a run will need, one line each: ok, warn or fail, with the remedy. */
import { environmentSecret, originsOf, PolicyConfig } from '@swefarm/shared';
import { type Command, Option } from 'commander';
import { diagnose, type Finding } from '../doctor.ts';
import { EXIT } from '../exit.ts';
import { harmless } from '../harmless.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, styled } from './terminal.ts';

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .description('check Redis, queue, artifacts, workers and the policy endpoint')
    .addOption(
      new Option('--policy-url <url>', 'OpenAI-compatible endpoint to ask (repeatable)').argParser(
        (url: string, earlier: string[] | undefined) => [...(earlier ?? []), url],
      ),
    )
    .option('--model <name>', 'model to ask; default: the first one it serves')
    .option('--api-key-env <variable>', 'environment variable that holds the key of the policy')
    .option('--require-tokens', 'try three turns, a thought and a tool call by the rule of trainers')
    .addOption(
      new Option('--token-mode <mode>', 'with --require-tokens: as the run will have it')
        .choices(PolicyConfig.shape.token_mode.unwrap().options)
        .default('token-in'),
    )
    .option('--tokenizer <folder>', "token-in without the endpoint's /tokenize")
    .option('--json', 'findings as JSON (the default in a pipe)');
  addFarmOptions(command).action(async (flags: Flags) => {
    const config = producerConfig(flags);
    const policyUrls = (flags.policyUrl as string[] | undefined) ?? [];
    const secret =
      flags.apiKeyEnv === undefined
        ? config.policy_api_key
        : environmentSecret(String(flags.apiKeyEnv), '--api-key-env');
    const findings = await diagnose({
      config,
      policyUrls,
      model: (flags.model as string | undefined) ?? null,
      tokens:
        flags.requireTokens === true
          ? {
              mode: flags.tokenMode as PolicyConfig['token_mode'],
              tokenizer: (flags.tokenizer as string | undefined) ?? null,
            }
          : null,
      apiKey: secret && { secret, origins: originsOf(policyUrls) },
      signal: listenForStop().draining,
    });
    if (process.stdout.isTTY && flags.json !== true) await print(findings.map(describe).join('\n'));
    else for (const finding of findings) await print(JSON.stringify(finding));
    process.exitCode = findings.some((finding) => finding.status === 'fail') ? EXIT.unusable : 0;
  });
}

const MARKS = { ok: ['green', '✓ ok  '], warn: ['yellow', '! warn'], fail: ['red', '✗ fail'] } as const;

function describe({ status, subject, detail, remedy }: Finding): string {
  const [style, mark] = MARKS[status];
  const line = `${styled(style, mark, process.stdout)} ${subject.padEnd(18)} ${harmless(detail)}`;
  return remedy === null ? line : `${line}\n${' '.repeat(26)}→ ${remedy}`;
}
