'use strict'

// One connection whose bytes go through transforms on their way to Node's HTTP parser. Node lets its parser read from
// the handle, in C++, past the socket; here that ends, and the bytes come as 'data' to the listener that Node keeps for
// sockets without a handle. In the place of that listener stands one of ours. Nothing is put on the parser, which
// serves other connections later, and on the socket there is nothing that can be seen.
//
// The transforms are the program's: they run in the context of the connection, unguarded.

const { types } = require('node:util')
const guard = require('../context/guard')
const { putBack, standIn } = require('./listener-wrappers')
const { hidden, own } = require('../objects')

const { apply } = Reflect
const { then } = Promise.prototype
/** @type {Buffer} */
const NOTHING = Buffer.alloc(0)

/**
 * @typedef {(chunk: Buffer, socket: any) => unknown} Transform
 *
 * @typedef {object} Interceptor
 * @property {Transform} transform
 * @property {string} name of the function
 * @property {string | undefined} at where it was set
 *
 * @typedef {object} Line what all connections of a server have in common
 * @property {readonly Interceptor[]} list in order; replaced, never mutated
 * @property {string | undefined} names
 *
 * @typedef {(interceptor: Interceptor, did: { threw: unknown } | { returned: unknown }) => Error} Blame says it, and makes the error
 */

/** Listeners of Node's, by the names that they have in all versions. */
const isData = named('bound socketOnData')
const isEnd = named('bound socketOnEnd')
const isResume = named('onSocketResume')

class Connection {
  /** may this connection still be given bytes? */
  #open = true
  /** the parser or a transform is at work: it must not be entered anew, or Node aborts */
  #busy = false
  /** what has to wait for the parser @type {Array<() => void>} */
  #tasks = []
  /** the transforms that the last chunk went through and that may hold something back @type {readonly Interceptor[]} */
  #used = []
  /** until Node reads on */
  #waiting = false
  #socket
  #line
  #blame
  /** Node's listener, and is ours still in its place? @type {ReturnType<typeof standIn>} */
  #stand
  /** The same for the end of a pause. @type {ReturnType<typeof standIn>} */
  #resumed

  /**
   * @param {any} socket
   * @param {Line} line
   * @param {Blame} blame
   */
  constructor (socket, line, blame) {
    this.#socket = socket
    this.#line = line
    this.#blame = blame
    // Bound functions have no frame of their own in stacks.
    this.#stand = standIn(socket, 'data', isData, this.#data.bind(this))
    if (this.#stand === undefined) return
    standIn(socket, 'end', isEnd, this.#end.bind(this))
    this.#resumed = standIn(socket, 'resume', isResume, (original, self, args) => {
      apply(original, self, args)
      this.#work()
    })
    const { parser } = socket
    // The flag stays: where it is seen, it says what it says without a transform, and Node may end again what has ended.
    if (own(parser, '_consumed') === true) parser.unconsume()
  }

  /** Is it a connection of HTTP/1? */
  get found () { return this.#stand !== undefined }

  /** @returns {readonly Interceptor[]} */
  get list () { return this.#line.list }

  get names () { return this.#line.names }

  /**
   * A transform is taken away: what it holds back goes on its way.
   * @param {Interceptor} interceptor
   * @param {readonly Interceptor[]} later those that came after it
   */
  leave (interceptor, later) {
    if (!this.#open || (this.#tasks.length === 0 && !this.#used.includes(interceptor))) return
    this.#tasks.push(() => {
      if (!this.#used.includes(interceptor)) return
      this.#used = this.#used.filter((one) => one !== interceptor)
      this.#deliver(this.#flush([interceptor], later.filter((one) => this.#line.list.includes(one))))
    })
    this.#work()
  }

  /** No transform is left: Node's listeners are in their places again. */
  rest () {
    if (this.#tasks.length > 0 || this.#busy) return // they pass on what there is
    for (const event of ['data', 'end', 'resume']) putBack(this.#socket, event)
    this.#open = false
    this.#used = []
  }

  /** @param {Function} original @param {unknown} self @param {unknown[]} args */
  #data (original, self, args) {
    const [chunk] = args
    if (!this.#open) return this.#socket.destroyed ? undefined : apply(original, self, args)
    if (!types.isUint8Array(chunk) || chunk.length === 0) return apply(original, self, args) // of a stream handed over
    if (this.#busy || this.#tasks.length > 0 || this.#socket._paused === true) {
      const { list } = this.#line
      this.#tasks.push(() => this.#pass(chunk, list))
      return this.#work()
    }
    this.#busy = true
    try {
      this.#pass(chunk, this.#line.list)
    } finally {
      this.#busy = false
    }
    if (this.#tasks.length > 0) this.#work()
  }

  /** @param {Uint8Array} chunk @param {readonly Interceptor[]} list those of when it came */
  #pass (chunk, list) {
    const socket = this.#socket
    this.#used = list
    let out = bufferOf(chunk)
    // Not by #through: each frame here takes the place of one of the program's in its stacks.
    for (let i = 0; i < list.length && out.length > 0 && this.#open && !socket.destroyed; i++) out = this.#call(list[i], out)
    if (out.length > 0 && this.#open) this.#deliver(out)
  }

  /** @param {Function} original @param {unknown} self @param {unknown[]} args */
  #end (original, self, args) {
    if (!this.#open) return this.#socket.destroyed ? undefined : apply(original, self, args)
    this.#tasks.push(() => {
      this.#deliver(this.#flush(this.#line.list))
      if (this.#open) apply(original, self, args)
      this.#open = false
    })
    this.#work()
  }

  /** Does what waits, as long as the parser takes it. A throw is the program's, of a request handler, and goes to where it would go. */
  #work () {
    if (this.#busy) return
    this.#busy = true
    try {
      while (this.#open && this.#tasks.length > 0 && this.#socket._paused !== true) this.#tasks.shift()?.()
    } finally {
      this.#busy = false
    }
    if (!this.#open) this.#tasks = []
    else if (this.#tasks.length > 0) this.#wait()
  }

  /**
   * Node takes no more for now. Who listens to 'data' of a request's socket makes Node take its own listener of 'resume' away,
   * and ours with it.
   */
  #wait () {
    if (this.#waiting || this.#resumed?.listed()) return
    this.#waiting = true
    this.#socket.once('resume', () => {
      this.#waiting = false
      this.#work()
    })
  }

  /**
   * Gives bytes to the parser. Where Node's listener is alone, nobody reads from the socket as far as can be seen: without a
   * transform the parser reads past it.
   * @param {Buffer} bytes
   */
  #parse (bytes) {
    const { _events: events, _readableState: state } = this.#socket
    const original = /** @type {Function} */ (this.#stand?.original)
    if (typeof events.data !== 'function' || typeof state?.reading !== 'boolean') return apply(original, this.#socket, [bytes])
    const { reading } = state
    state.dataEmitted = false
    state.reading = true
    try {
      apply(original, this.#socket, [bytes])
    } finally {
      if (state.reading) state.reading = reading // else the stream has pushed meanwhile, and wants to be read
    }
  }

  /**
   * @param {readonly Interceptor[]} list
   * @param {Buffer} chunk
   * @returns {Buffer} what comes out; nothing where one failed
   */
  #through (list, chunk) {
    let out = chunk
    for (let i = 0; i < list.length && out.length > 0 && this.#open; i++) out = this.#call(list[i], out)
    return this.#open ? out : NOTHING
  }

  /**
   * There comes no more: each is told with an empty chunk, and what it held back goes through those behind it.
   * @param {readonly Interceptor[]} list
   * @param {readonly Interceptor[]} [later] that are not told
   */
  #flush (list, later = []) {
    let out = /** @type {Buffer} */ (NOTHING)
    for (const one of list) {
      out = this.#through([one], out)
      if (!this.#open) return NOTHING
      const rest = this.#call(one, NOTHING)
      out = out.length === 0 ? rest : Buffer.concat([out, rest])
    }
    return this.#through(later, out)
  }

  /** @param {Interceptor} interceptor @param {Buffer} chunk @returns {Buffer} */
  #call (interceptor, chunk) {
    const { transform } = interceptor
    let returned
    try {
      returned = apply(transform, undefined, [chunk, this.#socket])
    } catch (threw) {
      return this.#fail(interceptor, { threw })
    }
    if (returned === undefined) return chunk
    const bytes = bytesOf(returned)
    if (bytes !== undefined) return bytes
    if (types.isPromise(returned)) guard.run(() => apply(then, returned, [ignore, ignore])) // its failure is told already
    return this.#fail(interceptor, { returned })
  }

  /** @param {Interceptor} interceptor @param {{ threw: unknown } | { returned: unknown }} did */
  #fail (interceptor, did) {
    const socket = this.#socket
    this.#open = false
    const error = this.#blame(interceptor, did)
    // Without a listener it would be an uncaught exception: of a socket that has another protocol since. Where that begins
    // behind the body of the request, Node 26 passes the socket's errors on to a stream that nobody may listen to.
    const upgrade = hidden(socket, 'UpgradeStream')
    const told = (upgrade ?? socket).listenerCount('error') > 0
    socket.destroy(told ? error : undefined)
    if (upgrade !== undefined && !told) process.nextTick(() => { socket.server?.emit('clientError', error, socket) })
    return NOTHING
  }

  /** To the parser, where it still is this connection's. @param {Buffer} bytes */
  #deliver (bytes) {
    const socket = this.#socket
    if (!this.#open || socket.destroyed || !this.#stand?.listed()) {
      this.#open = false
      return
    }
    if (bytes.length === 0) return
    const { readableLength } = socket
    this.#parse(bytes)
    if (this.#stand.listed() || socket.destroyed) return
    // Another protocol from here on. What was held back comes after what went with the request, which its handler may have
    // put back into the socket.
    const rest = this.#flush(this.#line.list)
    this.#open = false
    if (rest.length === 0 || socket.destroyed || socket.readableEnded) return
    if (readableLength === 0 && socket.readableLength > 0 && !socket._readableState.ended) socket.push(rest)
    else socket.unshift(rest)
  }
}

/** @param {string} name */
function named (name) {
  return (/** @type {Function} */ listener) => own(listener, 'name') === name
}

/** @param {Uint8Array} bytes */
function bufferOf (bytes) {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** @param {unknown} value @returns {Buffer | undefined} undefined: it is no bytes, or they cannot be read (any more) */
function bytesOf (value) {
  if (!types.isUint8Array(value)) return undefined
  try {
    return bufferOf(value)
  } catch {
    return undefined
  }
}

function ignore () {}

module.exports = { Connection }
