'use strict'

// What a command is to ask: a process by its PID, the processes behind a port or an address, those that
// listen on a LONGSTACK_SOCKET.

const { isIPv4, isIPv6 } = require('node:net')
const { stateOfName } = require('../files')
const { quote, UsageError } = require('../cli/flags')
const { directoryOf } = require('./protocol')
const {
  RefusedError, isNode, plainHost, processesWith, programOf, run, tcpSockets
} = require('./system')

/**
 * @typedef {object} Target
 * @property {number[]} pids
 * @property {string | undefined} socket a LONGSTACK_SOCKET
 * @property {End | undefined} end that connections have on one of their sides
 * @property {Array<{ pid: number, program: string | undefined }>} others processes at this end that are not
 *   of Node
 *
 * @typedef {{ hosts: string[] | undefined, port: number, text: string }} End hosts: undefined: any
 */

const LOCALHOST = ['127.0.0.1', '::1']
const ANY = ['0.0.0.0', '::', '*']

/**
 * @param {string} word of the command line
 * @returns {Target}
 * @throws {UsageError | RefusedError}
 */
function findTarget (word) {
  if (/^\d+$/.test(word)) return { pids: [Number(word)], socket: undefined, end: undefined, others: [] }
  const end = endOf(word)
  if (end !== undefined) return { ...processesAt(end), socket: undefined, end }
  if (isSocket(word)) return { pids: [], socket: word, end: undefined, others: [] }
  throw new UsageError(`${quote(word)} is neither a process id, nor :PORT, ADDRESS:PORT or the path of a ` +
    'LONGSTACK_SOCKET.')
}

/** @param {string} file the name of a LONGSTACK_SOCKET, or one of its sockets */
function isSocket (file) {
  return stateOfName(directoryOf(file))?.isDirectory() === true || stateOfName(file)?.isSocket() === true
}

/** @param {string} word @returns {End | undefined} undefined: it names none */
function endOf (word) {
  const [, host, digits] = /^(\[[^\]]+\]|[^:/[\]]*):(\d+)$/.exec(word) ?? []
  const port = Number(digits)
  if (digits === undefined || port < 1 || port > 65535) return undefined
  const name = host.replace(/^\[|\]$/g, '')
  if (name === '' || ANY.includes(name)) return { hosts: undefined, port, text: word }
  if (name === 'localhost') return { hosts: LOCALHOST, port, text: word }
  if (isIPv4(name) || isIPv6(name)) return { hosts: [plainHost(name)], port, text: word }
  throw new UsageError(`${quote(word)}: an address has numbers, as in 127.0.0.1:5432 or [::1]:5432.`)
}

/**
 * Returns whether one side of a connection is an end.
 * @param {import('./system').Address} side
 * @param {End} end
 */
function isAt (side, { hosts, port }) {
  return side.port === port && (hosts === undefined || ANY.includes(side.host) || hosts.includes(side.host))
}

/**
 * Returns whether a handle is at an end.
 * @param {{ local?: string, remote?: string }} handle
 * @param {End} end
 */
function isHandleAt ({ local, remote }, end) {
  return [local, remote].some((text) => {
    const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(text ?? '') ?? []
    return port !== undefined && isAt({ host: plainHost(host), port: Number(port) }, end)
  })
}

/**
 * Finds the processes that listen at an end, or have a connection there.
 * @param {End} end
 * @returns {{ pids: number[], others: Target['others'] }}
 * @throws {RefusedError} where there is none of Node
 */
function processesAt (end) {
  const inodes = tcpSockets().filter(({ local, remote }) => isAt(local, end) || isAt(remote, end))
    .map(({ inode }) => inode)
  const { pids, isComplete } = process.platform === 'linux' ? processesWith(inodes) : byLsof(end)
  const others = pids.filter((pid) => !isNode(pid)).map((pid) => ({ pid, program: programOf(pid) }))
  const own = pids.filter((pid) => isNode(pid) && pid !== process.pid)
  if (own.length > 0) return { pids: own, others }
  const names = others.map(({ pid, program }) => `process ${pid} (${program ?? 'unknown'})`)
  const has = names.length === 0 ? '' : ` ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} there.`
  const unseen = isComplete ? '' : ' Processes of other users cannot be seen.'
  throw new RefusedError(`No process of Node listens or has a connection at ${end.text}.${has}${unseen}`)
}

/** @param {End} end */
function byLsof ({ hosts = [''], port }) {
  const filters = hosts.map((host) =>
    `-iTCP${host === '' ? '' : `@${host.includes(':') ? `[${host}]` : host}`}:${port}`)
  const text = run('lsof', '-n', '-P', '-t', ...filters)
  return { pids: [...new Set(text.split('\n').filter(Boolean).map(Number))], isComplete: false }
}

module.exports = { findTarget, isHandleAt }
