//! rsp-rs beside `bench continuous`: one window query over the same stream.
//!
//! Takes the query as a line of JSON, then a line for each event: milliseconds, a tab, and its triples as N-Triples.
//! Tells a line of JSON for each row of an answer: the time of the newest event in its window, and milliseconds from the
//! first event to then.

use std::io::{self, BufRead, Write};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use oxigraph::io::{RdfFormat, RdfParser};
use rsp_rs::RSPEngine;

fn main() {
    let mut lines = io::stdin().lock().lines();
    let told: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let mut engine = RSPEngine::new(told["query"].as_str().unwrap().to_string());
    engine.initialize().unwrap();
    let rows = engine.start_processing();
    let stream = engine.get_stream(&engine.get_all_streams()[0]).unwrap();
    let began = Arc::new(OnceLock::<Instant>::new());
    let since = began.clone();
    println!("{}", serde_json::json!({"ready": true}));
    thread::spawn(move || {
        for row in rows {
            let at = since.get().unwrap().elapsed().as_millis() as u64;
            println!("{}", serde_json::json!({"newest": row.timestamp_from, "at": at}));
            io::stdout().flush().unwrap();
        }
    });
    for line in lines {
        let line = line.unwrap();
        let (time, triples) = line.split_once('\t').unwrap();
        began.get_or_init(Instant::now);
        let quads = RdfParser::from_format(RdfFormat::NTriples)
            .for_slice(triples.as_bytes())
            .map(|quad| quad.unwrap())
            .collect();
        stream.add_quads(quads, time.parse().unwrap()).unwrap();
    }
    // What is on its way in another thread is told before this one ends.
    thread::sleep(std::time::Duration::from_secs(3));
}
