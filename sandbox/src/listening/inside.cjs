/** Listens at 127.0.0.1 in the network namespace of a sandbox, passes the listening socket to its parent, and ends. */
const { spawnSync } = require('node:child_process');
const { createServer } = require('node:net');
const { networkInterfaces } = require('node:os');

process.on('disconnect', () => process.exit());
if (!networkInterfaces().lo) spawnSync('ip', ['link', 'set', 'lo', 'up'], { stdio: 'inherit' });
if (!networkInterfaces().lo) throw new Error('the loopback of the sandbox is down');
const server = createServer();
server.listen({ host: '127.0.0.1', port: 0 }, () => process.send({ port: server.address().port }, server));
