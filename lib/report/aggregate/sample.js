'use strict'

// A bounded sample of numbers with weights: all of them while they are few, later each with the same chance.

const { quantile } = require('./summary')
const { Numbers } = require('./numbers')

class Sample {
  #numbers = new Numbers()

  /** @param {number} value @param {number} weight */
  add (value, weight) {
    this.#numbers.add(value, weight)
  }

  /** Returns the quartiles, undefined if there is no number. */
  summary () {
    if (this.#numbers.size === 0) return undefined
    const sample = this.#numbers.sorted()
    const [q1, median, q3] = [0.25, 0.5, 0.75].map((p) => quantile(sample, p))
    return { min: sample.values[0], q1, median, q3, max: sample.values[sample.values.length - 1] }
  }
}

module.exports = { Sample }
