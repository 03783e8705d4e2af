//! Figures of a store.

use engine::{
    AcceleratorFigures, Counters, HeatFigures, HotPageFigures, JobTime, ReadCacheFigures,
    StageTime, StageTimes, Stats, TableFigures, TablesFigures, UnderWay, VolumeStats,
    VolumeWritten, Written,
};

use crate::json::record;

record! {
    Stats {
        uuid, logical_bytes, snapshot_bytes, deletions, deletions_held, unique_chunks,
        unique_bytes, stored_bytes, table_bytes, journal_bytes, device_bytes, allocated_bytes,
        free_bytes, promised_bytes, capacity_bytes, kept_bytes, dead_bytes as garbage_bytes,
        collectable_bytes as reclaimable_bytes, copied_chunks, copy_bytes,
        data_used_ratio, data_taken_ratio, tables_used_ratio, watermark_percent, dedup_ratio,
        compression_ratio, reduction_ratio, memory_bytes, memory_bytes_max, under_way,
        compression, chunk_bytes, fingerprint, verify, domains, damaged_chunks, given_up_chunks,
        volumes, writing_stopped, written, tables, read_cache, accelerator if some,
        stages, counters,
    }
    AcceleratorFigures {
        device, submissions, chunks_hashed, chunks_compressed, batch_fill_ratio, held_max,
        waiting_max, predicted_new, predicted_duplicate, compressed_in_vain, in_vain_bytes,
        sent_twice, predicted_ratio, active_ns, hash_busy_ratio, compress_busy_ratio,
    }
    UnderWay { reserved_chunks, quota_chunks, write_bytes, read_bytes }
    ReadCacheFigures {
        frames, bytes, bytes_max, hits, hits_at_doors, hits_ahead, misses, hit_ratio,
        hits_to_compare, hits_ahead_to_compare, ahead_read_bytes, ahead_used_bytes,
    }
    TablesFigures {
        hash_pbn, pbn_pba, maps, others, cached_pages, cached_pages_max, dirty_pages,
        young_entries, merge_reads, found_by_directory, directories_read, directory_bytes,
        young_bytes, filter_bytes,
    }
    TableFigures {
        lookups, leaf_reads, inner_reads, page_writes, hit_ratio, hits, misses, cached_pages,
        dirty_pages, heat,
    }
    HeatFigures { pages, hottest_1_percent_ratio, hottest_10_percent_ratio, hot_pages }
    HotPageFigures { number, is_young, ratio }
    Written {
        client_bytes, duplicate_bytes, dropped_bytes, new_frame_bytes, moved_frame_bytes,
        copied_frame_bytes, container_bytes, table_bytes, journal_bytes, superblock_bytes,
        device_bytes, amplification,
    }
    VolumeStats { name, size_bytes, mapped_bytes, written }
    VolumeWritten { unique_bytes, duplicate_bytes, stored_bytes }
    Counters {
        reads, writes, trims, flushes, bytes_read as read_bytes,
        bytes_written as written_bytes, chunks_duplicate, chunks_unique,
        chunks_zero, chunks_absorbed, chunks_spared, lookups_denied, lookups_absent, lookups_equal,
        lookups_differ, chunks_unindexed, lookups_skipped, chunks_read_to_compare, comparison_reads,
        comparison_bytes_read as comparison_read_bytes, frames_hit, frames_missed, frames_ahead,
        frames_hit_to_compare,
        frames_ahead_to_compare, merge_reads, chunks_found_by_directory, directories_read,
        chunks_read_back, chunks_damaged, chunks_healed, chunks_read_from_copies, chunks_copied,
        groups, syncs, checkpoints, containers_collected, chunks_moved, table_reads, table_writes,
        data_bytes_written as data_written_bytes, journal_bytes_written as journal_written_bytes,
        collection_bytes_written as collection_written_bytes, frame_bytes_stored as new_frame_bytes,
        frame_bytes_moved as moved_frame_bytes, frame_bytes_copied as copied_frame_bytes,
    }
    StageTimes { core, jobs }
    StageTime { stage, ns }
    JobTime { job, ns, chunks }
}
