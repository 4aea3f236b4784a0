'use strict'

// SIGUSR1, which has a process of Node open its inspector: where that listens, whether it opens, since the
// signal ends one that does not, and why it did not. On Linux, from /proc.

const { setTimeout: sleep } = require('node:timers/promises')
const { clean } = require('../text')
const {
  RefusedError, listeningAddresses, processesWith, read, readLink, stateOf, tcpSockets
} = require('./system')

const DEFAULT_PORT = 9229
const SIGUSR1_BIT = 1n << BigInt(require('node:os').constants.signals.SIGUSR1 - 1)

/** Calls of the kernel with a file descriptor first, x64: see arch/x86/entry/syscalls/syscall_64.tbl. */
const descriptorCalls = new Map([[0, 'reads from'], [1, 'writes to'], [73, 'waits for a lock of'],
  [74, 'flushes'], [75, 'flushes']])
const OPENAT = 257
const LOOKS = 3
const LOOK_MS = 50
const PORT_MS = 2_000 // for another command to be done

/**
 * Checks that SIGUSR1 opens the inspector of a process: that it neither ends it, nor interrupts a call of the
 * kernel that Node does not begin again (libuv does not after `read`: uv__fs_work in deps/uv/src/unix/fs.c),
 * nor comes to a process that cannot open it now.
 * @param {number} pid
 * @throws {RefusedError}
 */
async function checkSignal (pid) {
  if (process.platform !== 'linux') return
  if (/^[Tt]$/.test(stateOf(pid))) {
    throw new RefusedError(`Process ${pid} is stopped, as by SIGSTOP: kill -CONT ${pid} has it go on.`)
  }
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(read(`/proc/${pid}/status`))
  if (caught !== null && (BigInt(`0x${caught[1]}`) & SIGUSR1_BIT) === 0n) {
    throw new RefusedError(`Process ${pid} does not open its inspector on SIGUSR1: ${uncaughtReason(pid)}. ` +
      'LONGSTACK_SOCKET does without.')
  }
  const wait = await lastingCall(pid)
  if (wait === undefined) return await checkPort(pid)
  throw new RefusedError(`Process ${pid} cannot be asked now: its main thread ${wait}. It is not ` +
    'interrupted there: SIGUSR1 would have the call fail with EINTR.')
}

/**
 * Waits until no other process listens where this one would: another command may be asking that.
 * @param {number} pid
 * @throws {RefusedError}
 */
async function checkPort (pid) {
  const [{ port } = { port: DEFAULT_PORT }] = inspectorFlags(pid)
  for (const end = Date.now() + PORT_MS; ;) {
    const listener = listenerAt(port)
    if (listener === undefined || listener === pid) return
    if (Date.now() > end) {
      const who = listener === 0 ? 'another process' : `process ${listener}`
      throw new RefusedError(`Process ${pid} cannot open its inspector: ${who} listens on its port, ${port}.`)
    }
    await sleep(LOOK_MS)
  }
}

/**
 * Returns which process listens on a port.
 * @param {number} port
 * @returns {number | undefined} 0: one that cannot be seen; undefined: none does
 */
function listenerAt (port) {
  const sockets = tcpSockets().filter(({ isListening, local }) => isListening && local.port === port)
  return sockets.length === 0 ? undefined : processesWith(sockets.map(({ inode }) => inode)).pids[0] ?? 0
}

/**
 * Lists the flags that name a port of the inspector: `--inspect=9300`, `--inspect-port=0.0.0.0:9300`.
 * @param {number} pid
 * @returns {Array<{ port: number, opens: boolean }>} opens: the inspector is open from the start
 */
function inspectorFlags (pid) {
  const flags = flagsOf(pid).matchAll(/--(inspect(?:-brk|-wait|-port)?|debug-port)[=\0](?:[^\s\0]*:)?(\d+)/g)
  return [...flags].map(([, flag, port]) => ({ port: Number(port), opens: !flag.endsWith('port') }))
}

/**
 * Lists where the inspector of a process may listen now.
 * @param {number} pid
 * @returns {import('./system').Address[]}
 */
function inspectorAddresses (pid) {
  const addresses = listeningAddresses(pid)
  const flags = inspectorFlags(pid)
  const ports = [...flags.map(({ port }) => port), DEFAULT_PORT]
  if (addresses === undefined) return ports.map((port) => ({ host: '127.0.0.1', port }))
  const isChosenByNode = flags.some(({ port, opens }) => port === 0 && opens)
  return isChosenByNode ? addresses : addresses.filter(({ port }) => ports.includes(port))
}

/** Returns arguments and environment of a process. @param {number} pid */
const flagsOf = (pid) => `${read(`/proc/${pid}/cmdline`)}\0${read(`/proc/${pid}/environ`)}`

/** Returns the call on a file in which a main thread is and stays. @param {number} pid */
async function lastingCall (pid) {
  const first = callOf(pid)
  for (let i = 0; i < LOOKS; i++) {
    if (first === undefined || callOf(pid) !== first) return undefined
    await sleep(LOOK_MS)
  }
  return first
}

/** Returns why a process does not catch SIGUSR1: its flags say so. @param {number} pid @returns {string} */
function uncaughtReason (pid) {
  const flags = flagsOf(pid)
  if (/--disable-sigusr1/.test(flags)) return 'it was started with --disable-sigusr1'
  if (!/--(experimental-)?permission\b/.test(flags)) return 'it has only just started'
  return 'it was started with --permission, and opens it with --allow-inspector alone, from Node 24 on'
}

/**
 * Returns why a process has not opened its inspector on SIGUSR1.
 * @param {number} pid
 * @returns {string} a sentence, or several
 */
function unopenedReason (pid) {
  const any = `Process ${pid} did not open its inspector on SIGUSR1:`
  const place = placeOf(pid)
  if (place !== undefined) {
    return `${any} its main thread ${callOf(pid) ?? `waits in the kernel (${place})`}. The signal stays: ` +
      'the inspector opens when the process goes on.'
  }
  return `${any} it handles that signal itself, or its event loop is blocked in native code, as by ` +
    'execSync: then the inspector opens when the process goes on.'
}

/**
 * Returns with which file the main thread of a process waits in the kernel.
 * @param {number} pid
 * @returns {string | undefined} undefined: it does not, or the system does not tell
 */
function callOf (pid) {
  const place = placeOf(pid)
  if (place === undefined || process.arch !== 'x64') return undefined
  const [call, descriptor] = read(`/proc/${pid}/syscall`).split(' ').map(Number)
  if (call === OPENAT) return `opens a file, and waits in the kernel (${place})`
  const action = descriptorCalls.get(call)
  if (action === undefined) return undefined
  return `${action} ${clean(readLink(`/proc/${pid}/fd/${descriptor}`))}, and waits in the kernel (${place})`
}

/** Returns where in the kernel a main thread waits, if not for events. @param {number} pid */
function placeOf (pid) {
  const place = read(`/proc/${pid}/wchan`)
  return /^[SD]$/.test(stateOf(pid)) && !/^(|0|.*poll.*)$/.test(place) ? place : undefined
}

module.exports = { checkSignal, inspectorAddresses, inspectorFlags, unopenedReason }
