/** Starts a real Chromium for the tests of a file, and gateways with their page. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Gateway, startGateway } from '@swefarm/gateway';
import { testConfig } from '@swefarm/runs/test/farm.ts';
import { type Farm, Secret, silentLog } from '@swefarm/shared';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';

const BUILD = fileURLToPath(new URL('../../gateway/page/build.ts', import.meta.url));
export const TOKEN = 'a-token-of-the-gateway';
/** Timeout of waits in the browser, long enough for a machine under load. */
export const PATIENT = { timeout: 120_000 };

let browser: Browser;

beforeAll(async () => {
  await promisify(execFile)(process.execPath, [BUILD, '--if-needed']);
  browser = await chromium.launch({
    executablePath: process.env.SWEFARM_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
});
afterAll(() => browser?.close());

export async function gatewayOver(farm: Farm): Promise<Gateway> {
  const config = {
    ...testConfig(),
    gateway_host: '127.0.0.1',
    gateway_port: 0,
    gateway_token: new Secret(TOKEN),
  };
  const stop = new AbortController();
  const gateway = await startGateway({ farm, config, log: silentLog(), signal: stop.signal });
  onTestFinished(async () => {
    stop.abort();
    await gateway[Symbol.asyncDispose]();
  });
  return gateway;
}

/** Opens a page. Its errors and warnings, and its requests to other origins, fail the test. */
export async function openPage(
  origin: string,
  token: string | null,
  scheme: 'light' | 'dark' = 'light',
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENT.timeout);
  const problems: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin)) problems.push(`asked ${request.url()}`);
  });
  if (token !== null) {
    await context.addInitScript((value) => sessionStorage.setItem('swefarm.token', value), token);
  }
  onTestFinished(async () => {
    await context.close();
    expect(problems).toEqual([]);
  });
  return page;
}
