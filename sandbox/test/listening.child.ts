/**
 * A process that listens in a container of Docker. Arguments: the engine's socket, the image, and `stay` to wait until it is killed. Prints one
 * line of JSON.
 */
import { dockerRuntime } from '../src/docker/runtime.ts';
import { NEVER, OPTIONS, spec } from './subject.ts';

const [socketPath = '', name = '', task] = process.argv.slice(2);
const runtime = await dockerRuntime({ socketPath });
const container = await runtime.start(spec(await runtime.ensureImage(name, NEVER)), NEVER);
const listener = await container.listen((socket) => socket.end('heard'), NEVER);
const program = `import socket; print(socket.create_connection(("127.0.0.1", ${listener.port})).recv(9).decode())`;
const { output } = await container.exec(['python3', '-c', program], OPTIONS);
console.log(
  JSON.stringify({ id: container.id, by: listener.by, port: listener.port, heard: output.toString().trim() }),
);
if (task === 'stay') setInterval(() => undefined, 60_000);
else {
  await container[Symbol.asyncDispose]();
  await runtime[Symbol.asyncDispose]();
  // Idle connections to the engine stay open.
  process.exit();
}
