use super::*;

fn of(rows: usize, row_len: usize, col_chunk: usize, lead: usize) -> BlockGrid {
    BlockGrid { rows, row_len, row_chunk: 2, col_chunk, lead }
}

/// What is said to come after a thread's block is its next block, and what comes first is what
/// it begins with; all blocks together are all values.
#[test]
fn a_thread_is_told_to_go_on_with_what_is_not_its_own() {
    let jobs = [
        [Some(of(1, 160, 16, 0)), None, None],
        [Some(of(1, 160, 48, 7)), None, Some(of(1, 5, 16, 3))],
        [Some(of(1, 3, 16, 0)), Some(of(1, 64, 32, 0)), Some(of(1, 64, 16, 0))],
        [Some(of(5, 64, 16, 0)), Some(of(5, 40, 16, 2)), None],
        [Some(of(1, 3, 16, 0)), None, None],
        [None, None, None],
    ];
    let cases = (1..=4).flat_map(|n| [1, 3, 100].map(|most| (n, most)));
    for ((threads, most), matrices) in cases.flat_map(|case| jobs.map(|job| (case, job))) {
        let (pool, all) = (Pool::new(threads), JobMatrices(matrices));
        let tasks = all.tasks();
        let used = threads.min(tasks);
        let mut values = 0;
        for thread in 0..used {
            let edge = |thread| TaskQueue::edge(tasks, used, thread);
            let end = edge(thread + 1);
            let mut at = edge(thread);
            let mut announced = pool.first_block(matrices, thread);
            while at < end {
                let claim = Claim { thread, tasks: at..end.min(at + most), end };
                let line = all.block_run(&claim).unwrap();
                assert_eq!(announced, Some((line.index, line.cols.start)));
                values += line.rows.len() * line.cols.len();
                at += line.count;
                announced = match line.after {
                    AfterBlock { until, .. } if until > line.cols.end => {
                        Some((line.index, line.cols.end))
                    }
                    AfterBlock { next: NextBlock::Block { index, col }, .. } => Some((index, col)),
                    AfterBlock { next: NextBlock::EndOfJob { thread: of }, .. } => {
                        assert_eq!(of, thread);
                        None
                    }
                };
            }
            assert_eq!(announced, None);
        }
        let want: usize = matrices.iter().flatten().map(|b| b.rows * b.row_len).sum();
        assert_eq!(values, want, "{threads} threads, {most} at once, {matrices:?}");
    }
}

#[test]
fn a_value_is_in_two_blocks_or_in_none() {
    for (threads, most) in [(1, 1), (1, 9), (2, 1), (3, 2), (3, 9)] {
        let all = [Some(of(5, 64, 16, 0)), None, Some(of(5, 41, 16, 2))];
        let mut data = all.map(|b| vec![0u8; b.map_or(0, |b| b.rows * b.row_len)]);
        let mut lines = data.iter_mut();
        let mut cuts = all.map(|blocks| {
            let data = &mut lines.next()?[..];
            Some(PartitionedMatrix { data, blocks: blocks? })
        });
        Pool::new(threads).partitioned_mut(&mut cuts, most, |_, rows, mut block, _| {
            assert_eq!(rows.len(), block.rows());
            (0..rows.len()).for_each(|row| block.row_mut(row).iter_mut().for_each(|x| *x += 1));
        });
        assert!(data.iter().flatten().all(|times| *times == 1), "{threads}, {most}: {data:?}");
    }
}
