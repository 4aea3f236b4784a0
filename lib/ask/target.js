'use strict'

// What a command is to ask: a process by its PID, the processes behind a port or an address, those that
// listen on a LONGSTACK_SOCKET.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { isIPv4, isIPv6 } = require('node:net')
const { stateOfName } = require('../files')
const { quote, UsageError } = require('../cli/flags')
const { RefusedError, isNode, programOf } = require('./system')

/**
 * @typedef {object} Target
 * @property {number[]} pids
 * @property {string | undefined} socket a LONGSTACK_SOCKET
 * @property {End | undefined} end that connections have on one of their sides
 * @property {Array<{ pid: number, program: string | undefined }>} others processes at this end that are not
 *   of Node
 *
 * @typedef {{ hosts: string[] | undefined, port: number, text: string }} End hosts: undefined: any
 * @typedef {{ local: Place, remote: Place | undefined, inode: string }} Row
 * @typedef {{ host: string, port: number }} Place
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
  return stateOfName(`${file}.longstack`)?.isDirectory() === true || stateOfName(file)?.isSocket() === true
}

/** @param {string} word @returns {End | undefined} undefined: it names none */
function endOf (word) {
  const [, host, digits] = /^(\[[^\]]+\]|[^:/[\]]*):(\d+)$/.exec(word) ?? []
  const port = Number(digits)
  if (digits === undefined || port < 1 || port > 65535) return undefined
  const name = host.replace(/^\[|\]$/g, '')
  if (name === '' || ANY.includes(name)) return { hosts: undefined, port, text: word }
  if (name === 'localhost') return { hosts: LOCALHOST, port, text: word }
  if (isIPv4(name) || isIPv6(name)) return { hosts: [plain(name)], port, text: word }
  throw new UsageError(`${quote(word)}: an address has numbers, as in 127.0.0.1:5432 or [::1]:5432.`)
}

/** Returns an address as the system writes it: of IPv4 in IPv6, that of IPv4. @param {string} host */
function plain (host) {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1]
  if (mapped !== undefined) return mapped
  return isIPv6(host) ? new URL(`http://[${host}]`).hostname.slice(1, -1) : host
}

/** Whether one side of a connection is an end. @param {Place | undefined} place @param {End} end */
function isAt (place, { hosts, port }) {
  return place !== undefined && place.port === port &&
    (hosts === undefined || ANY.includes(place.host) || hosts.includes(place.host))
}

/**
 * Returns whether a handle is at an end.
 * @param {{ local?: string, remote?: string }} handle
 * @param {End} end
 */
function isHandleAt ({ local, remote }, end) {
  return [local, remote].some((text) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(text ?? '') ?? []
    return port !== undefined && isAt({ host: plain(host.replace(/^\[|\]$/g, '')), port: Number(port) }, end)
  })
}

/**
 * Finds the processes that listen at an end, or have a connection there.
 * @param {End} end
 * @returns {{ pids: number[], others: Target['others'] }}
 * @throws {RefusedError} where there is none of Node
 */
function processesAt (end) {
  const { pids, isComplete } = process.platform === 'linux' ? bySystem(end) : byLsof(end)
  const others = pids.filter((pid) => !isNode(pid)).map((pid) => ({ pid, program: programOf(pid) }))
  const own = pids.filter((pid) => isNode(pid) && pid !== process.pid)
  if (own.length > 0) return { pids: own, others }
  const names = others.map(({ pid, program }) => `process ${pid} (${program ?? 'unknown'})`)
  const has = names.length === 0 ? '' : ` ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} there.`
  const unseen = isComplete ? '' : ' Processes of other users cannot be seen.'
  throw new RefusedError(`No process of Node listens or has a connection at ${end.text}.${has}${unseen}`)
}

/** @param {End} end @returns {{ pids: number[], isComplete: boolean }} */
function bySystem (end) {
  const rows = ['tcp', 'tcp6'].flatMap((table) => rowsOf(read(`/proc/net/${table}`)))
  const inodes = new Set(rows.filter(({ local, remote }) => isAt(local, end) || isAt(remote, end))
    .map(({ inode }) => inode))
  /** @type {number[]} */
  const pids = []
  let isComplete = true
  for (const name of fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const links = linksIn(`/proc/${name}/fd`)
    const isThere = links?.some((link) => inodes.has(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? ''))
    if (links === undefined) isComplete = false
    if (isThere) pids.push(Number(name))
  }
  return { pids, isComplete }
}

/** @param {string} text of /proc/net/tcp @returns {Row[]} */
function rowsOf (text) {
  return text.split('\n').slice(1).filter(Boolean).map((line) => {
    const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/)
    return { local: placeOf(local), remote: placeOf(remote), inode }
  })
}

/** @param {string} text `0100007F:240D`: words of the address in the order of the CPU @returns {Place} */
function placeOf (text) {
  const [address, port] = text.split(':')
  const bytes = (address.match(/.{8}/g) ?? []).flatMap((word) =>
    (word.match(/../g) ?? []).map((byte) => parseInt(byte, 16)).reverse())
  if (bytes.length === 4) return { host: bytes.join('.'), port: parseInt(port, 16) }
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] << 8) | bytes[2 * i + 1]).toString(16))
  const isMapped = groups.slice(0, 6).join() === '0,0,0,0,0,ffff'
  const host = isMapped ? bytes.slice(12).join('.') : plain(groups.join(':'))
  return { host, port: parseInt(port, 16) }
}

/** @param {string} directory @returns {string[] | undefined} undefined: it may not be read */
function linksIn (directory) {
  try {
    return fs.readdirSync(directory).map((name) => {
      try {
        return fs.readlinkSync(`${directory}/${name}`)
      } catch {
        return ''
      }
    })
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT' ? [] : undefined
  }
}

/** @param {string} file @returns {string} */
function read (file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** @param {End} end @returns {{ pids: number[], isComplete: boolean }} */
function byLsof ({ hosts, port }) {
  const filters = (hosts ?? ['']).map((host) =>
    `-iTCP${host === '' ? '' : `@${host.includes(':') ? `[${host}]` : host}`}:${port}`)
  try {
    const text = execFileSync('lsof', ['-n', '-P', '-t', ...filters],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return { pids: [...new Set(text.split('\n').filter(Boolean).map(Number))], isComplete: false }
  } catch { // lsof exits with 1 where it finds none
    return { pids: [], isComplete: false }
  }
}

module.exports = { findTarget, isHandleAt }
