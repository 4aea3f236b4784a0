'use strict'

// LONGSTACK_SOCKET: a Unix socket of mode 0600 on which commands ask. Each thread has one, named as
// protocol.js says, in a directory that only this user may enter; the first process that is alive has the
// name that was given, and a command that connects by it finds the others beside it. The table in files.js
// says who removes what. What a blocked event loop runs is noted in a file beside the socket of its thread,
// where nobody answers then: inside of what blocks, once the option `blocked` reports it, until that has
// ended.

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { isMainThread, threadId } = require('node:worker_threads')
const { observers } = require('../blocked/wanted')
const guard = require('../core/guard')
const { attempt, inside, insidePrivate, stateOfName } = require('../files')
const { closeUnopened } = require('../standard-error')
const { messageOf, warn } = require('../warnings')
const { directoryOf, nameOf, noteOf, parseName } = require('./protocol')
const { markOwn, serve } = require('./session')

// Programs replace them
const { stringify } = JSON
const { now } = Date
const MAX_TRIES = 3 // a process that ends may remove the directory that was just found
const HOST_NAMESPACE = 0xeffffffc // PROC_PID_INIT_INO in include/linux/proc_ns.h

/** @typedef {NodeJS.ErrnoException} SystemError */

class LiveServer {
  #name
  #directory
  /** the target of the link that leads here */
  #target
  #namespace = namespace()
  #own = nameOf({ pid: process.pid, threadId, namespace: this.#namespace })
  /** @type {Set<net.Socket>} */
  #sockets = new Set()
  #server = net.createServer((socket) => guard.run(() => this.#receive(socket)))
  #isNoted = false
  #hasMadeDirectory = false

  /** @param {string} name */
  constructor (name) {
    this.option = name
    this.#name = path.resolve(name)
    this.#directory = directoryOf(this.#name)
    this.#target = `${path.basename(this.#directory)}/${this.#own}`
    observers.listeners.add(this.#note)
    guard.run(() => this.#listen())
  }

  #listen () {
    if (process.platform === 'win32') return this.#failed('Windows has no sockets that are files')
    this.#server.on('error', (error) => guard.run(() => this.#failed(reasonOf(error))))
    try {
      process.on('exit', this.#remove)
      if (!this.#open()) return this.#remove() // `error` follows
      if (!isMainThread) return
      this.#link()
      this.#sweep()
    } catch (error) {
      this.#remove()
      this.#failed(messageOf(error))
    }
  }

  /** @param {net.Socket} socket of a command */
  #receive (socket) {
    closeUnopened(socket)
    this.#sockets.add(socket)
    serve(socket)
    socket.on('close', () => { this.#sockets.delete(socket) })
  }

  /** @param {string} sentence */
  #failed (sentence) {
    warn('SOCKET', `cannot listen on ${this.option}: ${sentence}`)
  }

  /** @param {import('../blocked/blocking-callback').BlockedEvent} event */
  #note = ({ ms, stack, stillRunning }) => guard.run(() => {
    if (!stillRunning && !this.#isNoted) return
    const text = stringify({ pid: process.pid, threadId, since: now() - ms, stack })
    // Asks for the state of no file: what blocks may be reading the answer to such a question of its own. It
    // fails where it does not listen.
    attempt(() => inside(this.#directory, (directory) => {
      const file = noteOf(`${directory}/${this.#own}`)
      if (this.#isNoted) fs.unlinkSync(file)
      this.#isNoted = false
      if (!stillRunning) return
      fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
      this.#isNoted = true
    }))
  })

  /**
   * Listens in the directory. The socket has another name until it has its mode; libuv removes what had that
   * name when the server closes, so no file ever has it again.
   * @returns {boolean} false: it cannot listen, which the server reports later
   * @throws {SystemError} where the directory cannot be made or is not this user's alone
   */
  #open () {
    for (let tries = 1; ; tries++) {
      try {
        if (stateOfName(this.#directory) === undefined) {
          fs.mkdirSync(this.#directory, 0o700)
          this.#hasMadeDirectory = true
        }
        return insidePrivate(this.#directory, (directory) => {
          const first = `${directory}/${this.#own}.${process.hrtime.bigint()}`
          this.#server.listen({ path: first, exclusive: true }) // opens it at once; in a cluster, here
          if (!this.#server.listening) return false
          markOwn(this.#server.unref())
          fs.chmodSync(first, 0o600)
          fs.renameSync(first, `${directory}/${this.#own}`)
          unlink(noteOf(`${directory}/${this.#own}`)) // of a process that had this number
          return true
        })
      } catch (error) {
        const { code } = /** @type {SystemError} */ (error)
        if (tries === MAX_TRIES || (code !== 'ENOENT' && code !== 'EEXIST')) throw error
      }
    }
  }

  /**
   * Gives this process the name, unless a living one has it, or something else.
   */
  #link () {
    try {
      fs.symlinkSync(this.#target, this.#name)
    } catch (error) {
      const { code, message } = /** @type {SystemError} */ (error)
      const target = targetOf(this.#name)
      if (target === undefined || path.dirname(target) !== path.dirname(this.#target)) {
        return this.#failed(code === 'EEXIST' ? 'a file has that name' : message)
      }
      whenNobodyListens(this.#name, () => {
        if (targetOf(this.#name) !== target) return // another process was faster
        fs.unlinkSync(this.#name)
        fs.symlinkSync(this.#target, this.#name)
      })
    }
  }

  /** Removes sockets of threads that are gone, on which nobody listens, and what they noted. */
  #sweep () {
    const names = fs.readdirSync(this.#directory)
    for (const name of names.filter((other) => other !== this.#own)) {
      const file = path.join(this.#directory, name)
      const socket = /^(.*)\.busy$/s.exec(name)?.[1]
      if (socket !== undefined && !names.includes(socket)) {
        insidePrivate(this.#directory, (directory) => unlink(`${directory}/${name}`))
      }
      const state = stateOfName(file)
      if (state?.isSocket() !== true) continue
      whenNobodyListens(file, () => insidePrivate(this.#directory, (directory) => {
        if (stateOfName(`${directory}/${name}`)?.ino === state.ino) unlinkWithNote(`${directory}/${name}`)
      }))
    }
  }

  /**
   * Removes what this thread has made. The main thread ends with all others, of which Node calls nothing when
   * they are terminated: so it removes what they have made, too.
   */
  #remove = () => guard.run(() => {
    if (targetOf(this.#name) === this.#target) unlink(this.#name)
    let isOwn = this.#removeSockets()
    if (!isOwn) {
      this.#server.close() // gives back a descriptor, if none is left
      isOwn = this.#removeSockets() || this.#hasMadeDirectory
    }
    if (isOwn) attempt(() => fs.rmdirSync(this.#directory)) // unless others are there
  })

  /** @returns {boolean} false: the directory cannot be read, or is not this user's alone */
  #removeSockets () {
    return attempt(() => insidePrivate(this.#directory, (directory) => {
      for (const name of threadId === 0 ? fs.readdirSync(directory) : [this.#own]) {
        const { pid, namespace } = parseName(name) ?? {}
        if (pid !== process.pid || namespace !== this.#namespace) continue
        if (stateOfName(`${directory}/${name}`)?.isSocket()) unlinkWithNote(`${directory}/${name}`)
      }
      return true
    })) ?? false
  }

  /** Stops listening, and leaves nothing behind. */
  close () {
    process.off('exit', this.#remove)
    observers.listeners.delete(this.#note)
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    this.#remove()
  }
}

/** @returns {string | undefined} of this process's number, where it is a container's */
function namespace () {
  const inode = Number(/\d+/.exec(targetOf('/proc/self/ns/pid') ?? '')?.[0] ?? HOST_NAMESPACE)
  return inode === HOST_NAMESPACE ? undefined : inode.toString(36)
}

/** Returns why it cannot listen, without the path of a descriptor. @param {any} error of the server */
const reasonOf = (error) => messageOf(error).replace(` ${error.address}`, '')

/** @param {string} name @returns {string | undefined} what a link leads to; undefined: it is none */
const targetOf = (name) => attempt(() => fs.readlinkSync(name))

/** @param {string} file */
const unlink = (file) => attempt(() => fs.unlinkSync(file))

/** @param {string} socket */
function unlinkWithNote (socket) {
  unlink(socket)
  unlink(noteOf(socket))
}

/** @param {string} file of a socket @param {() => void} work */
function whenNobodyListens (file, work) {
  const probe = net.connect(file)
  closeUnopened(probe)
  probe.on('connect', () => guard.run(() => probe.destroy())).on('error', (error) => guard.run(() => {
    const { code } = /** @type {SystemError} */ (error)
    if (code === 'ECONNREFUSED' || code === 'ENOENT') attempt(work) // another process may do the same
  })).unref()
}

module.exports = { LiveServer }
