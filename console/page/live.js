// Live receipts: one event stream for the page. It is taken up again after it was lost,
// from the last cursor, so that no receipt is missed and none comes twice.
import { events } from './api.js';

const mostWaiting = 2000;
const drawEvery = 250;

export class Live {
  #after = '';
  #waiting = [];
  #drawing = false;
  #stream = null;
  #delay = 1000;
  #beat = 0;

  /** When the stream was lost, or 0 while it runs. */
  lostAt = 0;
  on = false;

  /**
   * @param {{rows: (rows: object[]) => void, missed: () => void, health: (health: object) => void,
   *   changed: () => void, failed: (error: Error) => void}} listener
   */
  constructor(listener) {
    this.listener = listener;
    setInterval(() => this.#expectBeat(), 5000);
  }

  start() {
    this.on = true;
    this.#run();
  }

  stop() {
    this.on = false;
    this.lostAt = 0;
    this.#end();
    this.listener.changed();
  }

  /** Ends the stream that runs. Its loop sees that another was begun and stops, too. */
  #end() {
    this.#stream?.abort();
    this.#stream = null;
  }

  async #run() {
    this.#end();
    const stream = this.#stream = new AbortController();
    for (;;) {
      try {
        await events({ after: this.#after }, (name, id, data) => this.#stream === stream && this.#receive(name, id, data), stream.signal);
      } catch (error) {
        if (this.#stream !== stream) return;
        this.#failed(error);
      }
      if (this.#stream !== stream) return;
      this.lostAt ||= Date.now();
      this.listener.changed();
      await new Promise((resume) => setTimeout(resume, this.#delay));
      if (this.#stream !== stream) return;
      this.#delay = Math.min(30_000, 2 * this.#delay);
    }
  }

  #failed(error) {
    if (error.status === 400 && this.#after) this.#resync(); // a cursor of another store
    if (error.status === 429) this.#delay = Math.max(this.#delay, 1000 * (error.retryAfter || 30));
    if (error.status === 401) this.stop();
    if (error.status) this.listener.failed(error);
  }

  #receive(name, id, data) {
    this.#beat = Date.now();
    if (this.lostAt || name === 'open') {
      this.lostAt = 0;
      this.#delay = 1000;
      this.listener.changed();
    }
    if (id) this.#after = id;
    if (name === 'health') this.listener.health(data);
    if (name === 'resync') this.#resync();
    if (name === 'receipt') this.#wait(data);
  }

  #resync() {
    this.#after = '';
    this.#waiting = [];
    this.listener.missed();
  }

  /** Rows are handed on together, in a frame, so none are drawn while the tab is hidden. */
  #wait(row) {
    this.#waiting.push(row);
    if (this.#waiting.length > mostWaiting) return this.#resync();
    if (this.#drawing) return;
    this.#drawing = true;
    setTimeout(() => requestAnimationFrame(() => {
      this.#drawing = false;
      const rows = this.#waiting.splice(0);
      if (rows.length > 0) this.listener.rows(rows);
    }), drawEvery);
  }

  /** A connection that died without a word has no comments either; they come every ten seconds. */
  #expectBeat() {
    if (!this.on || this.lostAt || !this.#beat || Date.now() - this.#beat < 35_000) return;
    this.lostAt = this.#beat;
    this.#beat = Date.now();
    this.listener.changed();
    this.#run();
  }
}
