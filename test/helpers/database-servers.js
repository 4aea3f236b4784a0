'use strict'

// Starts servers from Debian's packages, and FerretDB (build-server.sh), on their own ports, with data in a
// temporary directory.

const { execFileSync, spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { root } = require('./run')

const POSTGRES = '/usr/lib/postgresql'
const FERRETDB = path.join(root, '.cache', 'ferretdb', 'ferretdb')
const READY_MS = 30_000

/**
 * @typedef {object} RunningServer
 * @property {number} port
 * @property {() => Promise<void>} stop
 */

/** Returns the directory of PostgreSQL's programs, or undefined if there is none. */
function postgresDirectory () {
  const versions = fs.existsSync(POSTGRES) ? fs.readdirSync(POSTGRES) : []
  const directories = versions.map((version) => path.join(POSTGRES, version, 'bin'))
  return directories.find((directory) => fs.existsSync(path.join(directory, 'initdb')))
}

const hasRedis = () => spawnSync('redis-server', ['--version']).status === 0

/** Returns the user for PostgreSQL, which refuses to run as root. */
function postgresUser () {
  if (process.getuid?.() !== 0) return {}
  const idOf = (/** @type {string} */ flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** @param {string} bin directory of its programs @returns {Promise<RunningServer>} */
async function startPostgres (bin) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-postgres-'))
  const user = postgresUser()
  if (user.uid !== undefined) fs.chownSync(directory, user.uid, user.gid)
  const options = { cwd: directory, ...user }
  const initialize = ['-D', directory, '-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--no-locale']
  execFileSync(path.join(bin, 'initdb'), initialize, { ...options, stdio: 'ignore' })
  const port = await freePort()
  const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off', port: String(port) }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(path.join(bin, 'postgres'), ['-D', directory, ...args], { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  return await running(child, child.stderr, /ready to accept connections/, { port, directory, signal: 'SIGINT' })
}

/** @returns {Promise<RunningServer>} */
async function startRedis () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-redis-'))
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory]
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  return await running(child, child.stdout, /[Rr]eady to accept connections/, { port, directory, signal: 'SIGTERM' })
}

const hasMariadb = () => spawnSync('mariadbd', ['--version']).status === 0

/** Starts MariaDB with a user root without password. @returns {Promise<RunningServer>} */
async function startMariadb () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-mariadb-'))
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  const install = ['--no-defaults', `--datadir=${directory}`, '--auth-root-authentication-method=normal', '--skip-test-db']
  execFileSync('mariadb-install-db', [...install, ...user], { stdio: 'ignore' })
  const port = await freePort()
  const child = spawn('mariadbd', [
    '--no-defaults', `--datadir=${directory}`, `--socket=${path.join(directory, 's')}`, `--port=${port}`,
    '--bind-address=127.0.0.1', '--skip-name-resolve', '--innodb-flush-log-at-trx-commit=0', ...user
  ], { stdio: ['ignore', 'ignore', 'pipe'] })
  return await running(child, child.stderr, /ready for connections/, { port, directory, signal: 'SIGTERM' })
}

const hasFerretdb = () => fs.existsSync(FERRETDB)

/** Starts FerretDB, which speaks MongoDB's protocol. @returns {Promise<RunningServer>} */
async function startFerretdb () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-ferretdb-'))
  const port = await freePort()
  const child = spawn(FERRETDB, [`127.0.0.1:${port}`, `file:${directory}/`], { stdio: ['ignore', 'ignore', 'pipe'] })
  return await running(child, child.stderr, /Listening on TCP/, { port, directory, signal: 'SIGTERM' })
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {import('node:stream').Readable} output
 * @param {RegExp} ready output when it accepts connections
 * @param {{ port: number, directory: string, signal: NodeJS.Signals }} server
 * @returns {Promise<RunningServer>}
 */
async function running (child, output, ready, { port, directory, signal }) {
  const closed = once(child, 'close')
  let text = ''
  const isReady = new Promise((resolve) => {
    output.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      if (ready.test(text)) resolve(true)
    })
  })
  const late = new Promise((resolve) => setTimeout(resolve, READY_MS, false).unref())
  const stop = async () => {
    child.kill(signal)
    await closed
    fs.rmSync(directory, { recursive: true, force: true })
  }
  if (await Promise.race([isReady, closed.then(() => false), late])) return { port, stop }
  await stop()
  throw new Error(`The server did not start: ${text}`)
}

/** @returns {Promise<number>} a port that is free now */
async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

module.exports = {
  hasFerretdb, hasMariadb, hasRedis, postgresDirectory, startFerretdb, startMariadb, startPostgres, startRedis
}
