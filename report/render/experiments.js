'use strict'

// Predictions of --what-if in words, for the text and the page.

const { counted, time } = require('./format')

const NOT_REPLAYED = 'Not known: no route has enough requests in whole recordings.'

/**
 * @param {import('../aggregate/model').Experiments} experiments
 * @returns {Array<{ head: string, predictions: string[] }>} each prediction with the error of its own replay
 */
function experimentTexts ({ changes }) {
  return changes.map(({ peer, from, to, figures }) => ({
    head: `${counted(to, 'connection')} to ${peer} in place of ${from}`,
    predictions: figures.length > 0 ? figures.map((figure) => predictionText(figure, from)) : [NOT_REPLAYED]
  }))
}

/** @param {import('../aggregate/what-if').Resized['figures'][number]} figure @param {number} from */
function predictionText ({ route, beforeMs, afterMs, unread, error, unsure }, from) {
  const own = `the replay with ${from} is off by ${Math.round(error * 100)} %`
  const reasons = {
    error: own,
    drift: 'the halves of the replay differ',
    many: 'requests send several queries to it at once',
    starved: 'the process waited for a CPU',
    crowded: 'it takes longer the more queries it has at once'
  }
  if (unsure !== undefined) return `${route}: not known, as ${reasons[unsure]}`
  const change = `median ${time(beforeMs)} -> ${time(afterMs)}${unread ? ' for clients' : ''}`
  return `${route}: ${change} if the peer responds as fast; ${own}`
}

module.exports = { experimentTexts }
