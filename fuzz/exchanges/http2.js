'use strict'

// Streams of HTTP/2, and what may become of them and of their sessions.

const http2 = require('node:http2')

/**
 * @typedef {import('./world').World} World
 * @typedef {import('./world').Task} Task
 */

const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants
const codes = [NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM]

/** @param {World} world @returns {http2.ClientHttp2Session} */
function connect (world) {
  const session = http2.connect(`https://127.0.0.1:${world.ports.http2}`, { rejectUnauthorized: false })
  session.on('error', () => {})
  return session
}

/** Returns the session that the good ones share. @param {World} world */
function sharedSession (world) {
  const { session } = world
  if (session !== undefined && !session.destroyed && !session.closed) return session
  world.session = connect(world)
  return world.session
}

/**
 * @param {World} world
 * @param {Task} task
 * @param {http2.ClientHttp2Session} session
 * @param {string} how
 * @param {(stream: http2.ClientHttp2Stream) => void} [act]
 * @returns {Promise<void>}
 */
function askStream (world, task, session, how, act) {
  /** @type {import('./judge').Side} */
  const side = { outcome: 'cut' }
  return new Promise((resolve) => {
    /** @type {http2.ClientHttp2Stream} */
    let stream
    try {
      stream = session.request({ ':path': `${task.path}/${how}` })
    } catch {
      return resolve()
    }
    task.truth.made.push(side)
    let hasEnded = false
    stream.on('error', () => {})
    stream.on('end', () => { hasEnded = true })
    stream.on('close', () => {
      if (stream.rstCode !== NGHTTP2_NO_ERROR) side.outcome = 'cut'
      else side.outcome = hasEnded ? 'whole' : 'free'
      resolve()
    })
    stream.resume()
    act?.(stream)
    setTimeout(resolve, 1000).unref()
  })
}

const hows = ['', 'slow', 'silent', 'half', 'big']

/** @type {Record<string, import('./world').Exchange>} */
module.exports = {
  stream (world, task) {
    task.truth.isGood = true
    return askStream(world, task, sharedSession(world), ['', 'slow', 'big'][world.below(3)])
  },

  'cut-stream' (world, task) {
    free(task)
    const cut = (/** @type {http2.ClientHttp2Stream} */ stream) => {
      switch (world.below(3)) {
        case 0: return stream.close(codes[world.below(4)])
        case 1: return stream.destroy()
        default: return stream.destroy(new Error('on purpose'))
      }
    }
    return askStream(world, task, sharedSession(world), hows[world.below(5)], (stream) => {
      world.sometime(() => cut(stream))
    })
  },

  'stream-cut-by-server' (world, task) {
    free(task)
    return askStream(world, task, sharedSession(world), 'cut-by-server')
  },

  // The whole session ends with its streams in flight.
  async 'cut-session' (world, task) {
    free(task)
    const session = connect(world)
    const asked = [1, 2, 3].map(() => askStream(world, task, session, hows[world.below(5)]))
    world.sometime(() => {
      switch (world.below(5)) {
        case 0: return session.destroy()
        case 1: return session.destroy(new Error('on purpose'))
        case 2: return session.destroyed ? undefined : session.goaway(NGHTTP2_INTERNAL_ERROR)
        case 3: return session.destroy(undefined, NGHTTP2_CANCEL)
        default:
          if (!session.destroyed && !session.closed) session.ping(() => {})
          return session.close()
      }
    })
    setTimeout(() => session.destroy(), 30)
    await Promise.all(asked)
  },

  async 'stream-timeout' (world, task) {
    free(task)
    const session = connect(world)
    await askStream(world, task, session, 'silent', (stream) => {
      stream.setTimeout(4, () => stream.close(NGHTTP2_CANCEL))
    })
    session.destroy()
  },

  async 'aborted-stream' (world, task) {
    free(task)
    const session = connect(world)
    const controller = new AbortController()
    /** @type {Promise<void>} */
    const closed = new Promise((resolve) => {
      const stream = session.request({ ':path': `${task.path}/silent` }, { signal: controller.signal })
      task.truth.made.push({ outcome: 'free' })
      stream.on('error', () => {}).on('close', () => resolve()).resume()
      setTimeout(resolve, 1000).unref()
    })
    world.sometime(() => controller.abort())
    await closed
    session.destroy()
  }
}

/** Judges only that there are spans and that they end, not which side saw it first. @param {Task} task */
function free ({ truth }) {
  truth.isFree = true
}
