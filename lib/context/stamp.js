'use strict'

// A mark on any object that nobody can see: a class whose constructor returns its argument and which declares
// a private field installs that field on the argument. No inspect, no own key, no proxy trap sees it, and
// frozen objects take it. Reading is as fast as a property.

class Same {
  /** @param {object} object */
  constructor (object) {
    return object
  }
}

/**
 * Makes an independent kind of mark.
 * @template T
 * @returns {{ read(object: object): T | undefined, write(object: object, value: T): void }}
 */
function createStamp () {
  class Stamp extends Same {
    /** @type {T} */
    #value

    /** @param {object} object @param {T} value */
    constructor (object, value) {
      super(object)
      this.#value = value
    }

    /** @param {any} object @returns {T | undefined} */
    static read (object) {
      return #value in object ? object.#value : undefined
    }

    /** Node reuses some resources (HTTP parsers): stamp again, don't fail. @param {any} object @param {T} value */
    static write (object, value) {
      if (#value in object) object.#value = value
      else Reflect.construct(Stamp, [object, value])
    }
  }
  return Stamp
}

module.exports = { createStamp }
