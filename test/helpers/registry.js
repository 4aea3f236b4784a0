'use strict'

// Verdaccio as a private registry: it has only packages published to it, and no upstream registry.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { installPackages } = require('./install-packages')

const START_MS = 60_000

/** @typedef {{ url: string, npmrc: (scope: string) => string, stop: () => void }} Registry */

/**
 * Starts a registry.
 * @param {string} directory a new one, for its files
 * @returns {Promise<Registry | { offline: string }>} the registry, or the reason why there is none
 */
async function startRegistry (directory) {
  const { directory: home, offline } = installPackages('registry')
  if (home === undefined) return { offline: String(offline) }
  fs.mkdirSync(directory)
  const config = path.join(directory, 'config.yaml')
  fs.writeFileSync(config, `storage: ${JSON.stringify(path.join(directory, 'storage'))}
web: { enable: false }
auth: { htpasswd: { file: ./htpasswd } }
packages: { '**': { access: $all, publish: $all } }
log: { type: stdout, format: json, level: error }
`)
  const port = await findPort()
  const program = path.join(home, 'node_modules', 'verdaccio', 'bin', 'verdaccio')
  const args = [program, '--config', config, '--listen', `127.0.0.1:${port}`]
  const child = spawn(process.execPath, args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => { output += text })
  const url = `http://127.0.0.1:${port}/`
  const stop = () => { child.kill('SIGKILL') }
  for (const start = Date.now(); !await answers(url);) {
    if (child.exitCode === null && Date.now() - start < START_MS) continue
    stop()
    throw new Error(`Verdaccio does not answer: ${output}`)
  }
  return { url, stop, npmrc: (scope) => `${scope}:registry=${url}\n//127.0.0.1:${port}/:_authToken=any\n` }
}

/** @returns {Promise<number>} a port that is free */
async function findPort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  return port
}

/** @param {string} url @returns {Promise<boolean>} */
async function answers (url) {
  await delay(100)
  return fetch(`${url}-/ping`).then(({ ok }) => ok, () => false)
}

module.exports = { startRegistry }
