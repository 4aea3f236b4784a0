'use strict'

// What the system tells about other processes, before anything is sent to them: whether one is of Node, which
// it has started, which sockets it has. All of it from /proc on Linux, by ps and lsof on macOS.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { isIPv6 } = require('node:net')
const path = require('node:path')
const { stateOfName } = require('../files')
const { directoryOf, parseName } = require('./protocol')

const NODE_NAME = /node|electron/i
const LISTEN = '0A' // state of a socket in /proc/net/tcp, see include/net/tcp_states.h

/**
 * @typedef {{ host: string, port: number }} Address
 * @typedef {{ local: Address, remote: Address, isListening: boolean, inode: string }} TcpSocket
 */

/** A sentence for the user: the process cannot be asked. */
class RefusedError extends Error {}

/** The same: it has closed its connection, as one does that ends. */
class GoneError extends RefusedError {}

/**
 * Checks that a process may be asked.
 * @param {number} pid
 * @throws {RefusedError}
 */
function checkProcess (pid) {
  if (process.platform === 'win32') {
    throw new RefusedError('A running process can be asked on Linux and macOS only; on Windows run the ' +
      'program with longstack profile app.js.')
  }
  if (pid === process.pid) throw new RefusedError(`Process ${pid} is this command itself.`)
  try {
    process.kill(pid, 0)
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    if (code === 'ESRCH') throw new RefusedError(`There is no process ${pid}.`)
    throw new RefusedError(`Process ${pid} belongs to another user.`)
  }
  const program = programOf(pid)
  if (program !== undefined && !NODE_NAME.test(path.basename(program))) {
    throw new RefusedError(`Process ${pid} is not a Node process: it runs ${program}.`)
  }
  if (isElsewhere(pid)) {
    throw new RefusedError(`Process ${pid} has another network, as in a container: run longstack there, or ` +
      'set LONGSTACK_SOCKET.')
  }
}

/** Returns whether a process has ended, or does so. @param {number} pid */
function hasEnded (pid) {
  if (process.platform === 'linux' && /^[ZX]$/.test(stateOf(pid))) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ESRCH'
  }
}

/** @param {number} pid */
const endedSentence = (pid) => `Process ${pid} has ended.`

/**
 * Returns the state that Linux tells, as a letter.
 * @param {number} pid
 * @returns {string} empty: it has ended, or cannot be seen
 */
function stateOf (pid) {
  return /^\d+ \(.*\) (\S)/s.exec(read(`/proc/${pid}/stat`))?.[1] ?? ''
}

/** Returns the file that a process runs. @param {number} pid @returns {string | undefined} */
function programOf (pid) {
  const program = process.platform === 'linux'
    ? readLink(`/proc/${pid}/exe`)
    : run('ps', '-o', 'comm=', '-p', String(pid)).trim()
  return program === '' ? undefined : program
}

/** Returns whether the loopback interface of a process is not this one's. @param {number} pid */
function isElsewhere (pid) {
  const network = readLink(`/proc/${pid}/ns/net`)
  return network !== '' && network !== readLink('/proc/self/ns/net')
}

/**
 * Lists the processes of Node that a process has started, and those that they have, by their program.
 * @param {number} pid
 * @returns {number[]} without this command itself
 */
function nodeDescendants (pid) {
  const pairs = parents()
  const family = [pid]
  for (const parent of family) {
    for (const [child, itsParent] of pairs) {
      if (itsParent === parent && !family.includes(child)) family.push(child)
    }
  }
  return family.slice(1).filter((child) => child !== process.pid && isNode(child))
}

/** @returns {number[][]} each process, and its parent */
function parents () {
  return process.platform === 'linux'
    ? allPids().map((pid) => [pid, Number(/^\d+ \(.*\) \S (\d+)/s.exec(read(`/proc/${pid}/stat`))?.[1])])
    : run('ps', '-axo', 'pid=,ppid=').trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number))
}

/** Lists the processes of the machine. @returns {number[]} on Linux alone */
const allPids = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)

/** @param {number} pid */
function isNode (pid) {
  const program = programOf(pid)
  return program !== undefined && NODE_NAME.test(path.basename(program))
}

/** Returns what a process calls itself: in a namespace of its own, another number. @param {number} pid */
function pidInside (pid) {
  const number = /^NSpid:.*?(\d+)\s*$/m.exec(read(`/proc/${pid}/status`))?.[1]
  return number === undefined ? pid : Number(number)
}

/**
 * Lists the sockets of LONGSTACK_SOCKET on which a process listens.
 * @param {number} pid
 * @returns {string[]} those of its user
 */
function socketsOf (pid) {
  const name = /(?:^|\0)LONGSTACK_SOCKET=([^\0]+)/.exec(read(`/proc/${pid}/environ`))?.[1]
  if (name === undefined) return []
  const owner = /^Uid:\s*\d+\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1]
  return socketFiles(path.resolve(readLink(`/proc/${pid}/cwd`), name)).filter((file) =>
    parseName(path.basename(file))?.pid === pidInside(pid) && String(stateOfName(file)?.uid) === owner)
}

/**
 * Lists the sockets of a LONGSTACK_SOCKET.
 * @param {string} name or the path of one of the sockets
 * @returns {string[]}
 */
function socketFiles (name) {
  const directory = directoryOf(name)
  try {
    const names = fs.readdirSync(directory).filter((file) => parseName(file) !== undefined)
    return names.map((file) => path.join(directory, file))
  } catch {
    return [name]
  }
}

/**
 * Lists the TCP sockets of a network on Linux.
 * @param {string | number} [pid] of a process that is in it
 * @returns {TcpSocket[]}
 */
function tcpSockets (pid = 'self') {
  const rows = ['tcp', 'tcp6'].flatMap((table) => read(`/proc/${pid}/net/${table}`).split('\n').slice(1))
  return rows.filter(Boolean).map((row) => {
    const [, local, remote, state, , , , , , inode] = row.trim().split(/\s+/)
    return { local: addressOf(local), remote: addressOf(remote), isListening: state === LISTEN, inode }
  })
}

/** @param {string} text `0100007F:240D`: words of the address in the order of the CPU @returns {Address} */
function addressOf (text) {
  const [address, port] = text.split(':')
  const bytes = Buffer.from(address, 'hex').swap32()
  const groups = bytes.toString('hex').replace(/....(?!$)/g, '$&:')
  return { host: bytes.length === 4 ? bytes.join('.') : plainHost(groups), port: parseInt(port, 16) }
}

/** Returns an address as the system writes it: of IPv4 in IPv6, that of IPv4. @param {string} host */
function plainHost (host) {
  if (!isIPv6(host)) return host
  const canonical = new URL(`http://[${host}]`).hostname.slice(1, -1)
  const [, ...words] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(canonical) ?? []
  const bytes = Buffer.from(words.map((word) => word.padStart(4, '0')).join(''), 'hex')
  return bytes.length === 0 ? canonical : bytes.join('.')
}

/** @param {number} pid @returns {Set<string> | undefined} undefined: they may not be seen */
function socketInodes (pid) {
  try {
    const links = fs.readdirSync(`/proc/${pid}/fd`).map((name) => readLink(`/proc/${pid}/fd/${name}`))
    return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT' ? new Set() : undefined
  }
}

/**
 * Finds the processes that have sockets open, on Linux.
 * @param {string[]} inodes
 * @returns {{ pids: number[], isComplete: boolean }} isComplete: no process was hidden
 */
function processesWith (inodes) {
  const looks = allPids().map((pid) => ({ pid, own: socketInodes(pid) }))
  const pids = looks.filter(({ own }) => inodes.some((inode) => own?.has(inode))).map(({ pid }) => pid)
  return { pids, isComplete: looks.every(({ own }) => own !== undefined) }
}

/**
 * Lists the TCP addresses that a process listens on.
 * @param {number} pid
 * @returns {Address[] | undefined} undefined: the system does not tell
 */
function listeningAddresses (pid) {
  if (process.platform !== 'linux') {
    const text = run('lsof', '-n', '-P', '-a', '-p', String(pid), '-iTCP', '-sTCP:LISTEN', '-Fn')
    const ports = [...text.matchAll(/^n.*:(\d+)$/gm)].map(([, port]) => Number(port))
    return text === '' ? undefined : ports.map((port) => ({ host: '127.0.0.1', port })) // none, or no lsof
  }
  const inodes = socketInodes(pid)
  if (inodes === undefined) return undefined
  const own = tcpSockets(pid).filter(({ isListening, inode }) => isListening && inodes.has(inode))
  return own.map(({ local: { host, port } }) =>
    ({ host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port }))
}

/** @param {string} program @param {...string} args @returns {string} its output; empty: it failed */
function run (program, ...args) {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}

/** @param {string} file @returns {string} empty where it cannot be read */
function read (file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** @param {string} file */
function readLink (file) {
  try {
    return fs.readlinkSync(file)
  } catch {
    return ''
  }
}

module.exports = {
  GoneError,
  RefusedError,
  checkProcess,
  endedSentence,
  hasEnded,
  isNode,
  listeningAddresses,
  nodeDescendants,
  pidInside,
  plainHost,
  processesWith,
  programOf,
  read,
  readLink,
  run,
  socketFiles,
  socketsOf,
  stateOf,
  tcpSockets
}
